# The parts of a bar add up to the step: one horizontal bar a point, or with --x a column for each value of the setting, a panel a curve.
#include "style.gp"
array colours = [blue, yellow, green, orange, amber, pink, sky, quiet]
parts = |$parts| - 1
name(i) = int(word($parts[i + 1], 3)) ? word($parts[i + 1], 2) : ''
stats $bars using "step" name 'step' nooutput
scale = step_max < 1 ? 1000 : 1
unit = step_max < 1 ? 'ms' : 's'
said(i) = name(i).sprintf(': %.3g '.unit.', %.1f %%', scale * column(sprintf('part_%d_s', i)), 100 * column(sprintf('part_%d_s', i)) / column("step"))
middle(i) = 0.5 * (before(i - 1) + before(i))
said_of = '' # parts that some bar has
do for [i = 1 : parts] { said_of = name(i) eq '' ? said_of : said_of.sprintf(' %d', i) }
before(i) = i == 0 ? 0 : before(i - 1) + scale * column(sprintf('part_%d_s', i))
sentence = wrap(word($heading[2], 2), plain ? 76 : 150)
note = 'Time of the compute stream, mean over ranks and steps; what collectives cost it is divided as their own time is.' \
  .(int(word($heading[2], 5)) > 0 ? ' Points out of memory are left out.' : '')

if (int(word($heading[2], 3))) {
panels = |$panels| - 1
#include "grid.gp"
small = columns < 3 ? ',12' : ',9'
values = |$ticks| - 1
tick = 0
do for [t = 2 : |$ticks|] { tick = strlen(word($ticks[t], 2)) > tick ? strlen(word($ticks[t], 2)) : tick }
slanted = (tick + 2) * values > 110 / columns
head = 92
room = 150 / columns # characters of a panel's name; longer ones have several lines
breaks(text) = strstrt(text, "\n") == 0 ? 0 : 1 + breaks(text[strstrt(text, "\n") + 1:*])
title = 26
do for [p = 2 : |$panels|] { title = 26 + 16 * breaks(wrap(word($panels[p], 2), room)) > title ? 26 + 16 * breaks(wrap(word($panels[p], 2), room)) : title }
ticks = 30 + (slanted ? 5 * (tick < 30 ? tick : 30) : 0)
foot = 240
each = title + ticks + (lines == 1 ? 480 : lines == 2 ? 250 : 170)
height = canvas(head + lines * each + foot)
each = (height - head - foot) / (1.0 * lines)
eval terminal(height)
pixels(n) = n / (1.0 * height)
set border 3 linecolor rgb grey
set tics nomirror textcolor rgb grey font small
set grid ytics linetype -1 linecolor rgb faint linewidth 0.5
set style fill solid 1 noborder
set yrange [0 : 1.05 * scale * step_max]
set xrange [0.4 : values + 0.6]
set xtics scale 0 ()
set for [t = 2 : |$ticks|] xtics add (word($ticks[t], 2) real(word($ticks[t], 1)))
if (slanted) { set xtics rotate by -30 }
set label 1 'Where the time of a step goes, over '.word($heading[2], 4) at screen 0.5,1 - pixels(40) center font ',18'
set label 2 word($heading[2], 1) at screen 0.5,1 - pixels(74) center textcolor rgb grey
set label 3 sentence at screen 0.02,pixels(100) font ',11'
set label 4 note at screen 0.02,pixels(18) textcolor rgb grey font ',11'
set label 5 'time of a step, '.unit at screen 0.018,0.55 center rotate
set label 6 word($heading[2], 4) at screen 0.53,pixels(foot - 16) center
if (panels > 1) { set multiplot }
do for [p = 1 : panels] {
  left = 0.085 + 0.915 / columns * ((p - 1) % columns)
  upper = 1 - pixels(head + title + each * ((p - 1) / columns))
  set lmargin at screen left
  set rmargin at screen left + 0.915 / columns - (columns > 1 ? 0.045 : 0.02)
  set tmargin at screen upper
  set bmargin at screen upper - pixels(each - title - ticks)
  set label 7 (panels > 1 ? wrap(word($panels[p + 1], 2), room) : '') at graph 0.5,1 offset 0,0.6 + 0.6 * breaks(wrap(word($panels[p + 1], 2), room)) center font small
  if (p == 1) { set key at screen 0.05,pixels(foot - 40) left top maxrows 3 reverse Left samplen 1 width 1 } else { unset key }
  plot for [i = 1 : parts] $bars \
    using "x":(column("curve") == p ? 0 : NaN):(column("x") - 0.35):(column("x") + 0.35):(before(i - 1)):(before(i)) \
    with boxxyerror linecolor rgb colours[i] title name(i)
  unset label 1
  unset label 2
  unset label 3
  unset label 4
  unset label 5
  unset label 6
}
if (panels > 1) { unset multiplot }
} else {
more = 60
least = 220
#include "bars.gp"
set title 'Where the time of a step goes' font ',18' offset 0,1
set label 2 sentence at screen 0.02,(plain ? 120.0 : 96.0) / height font ',11'
set label 3 (plain ? '' : note) at screen 0.02,20.0 / height textcolor rgb grey font ',11'
set bmargin plain ? 13 : 9.5
set rmargin plain ? 4 : 29
set xlabel 'time of a step, '.unit
set offsets 0, graph 0.12, 0, 0
plot for [i = 1 : parts] $bars \
    using (before(i - 1)):"place":(before(i - 1)):(before(i)):(column("place") - 0.35):(column("place") + 0.35) \
    with boxxyerror linecolor rgb colours[i] title name(i), \
  for [k = 1 : hover ? words(said_of) : 0] $bars using (middle(int(word(said_of, k)))):"place":(said(int(word(said_of, k)))) with labels hypertext point pointtype 7 pointsize 4 linecolor rgb "#ff000000" notitle, \
  $bars using (scale * column("step")):"place":(sprintf('%.3g '.unit, scale * column("step"))) with labels left offset 1,0 font ',11' notitle
}
