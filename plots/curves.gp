# One line a curve over a setting, in one panel or several. Filled: simulated. Hollow: published. Cross on the axis: out of memory.
# Dashed: given what was measured (`given`, where it is there: columns of points `given` and `measured`), which are triangles.
# Included by figures with the series points, legend, panels, ticks and axis; `what` is on the y axis, `over` the title, `setting` stands
# below it, `source` says where what is published is from, `changes` whether the legend has the change over a
# curve. `closer`, where it is there: the y axis need not begin at 0, and says so; `banding`: what bands are, if not of samples, behind the word.

panels = |$panels| - 1
names = |$legend| - 1
#include "grid.gp"
small = columns < 3 ? ',13' : columns < 5 ? ',10' : ',8'
logarithmic = int(word($axis[2], 4))
number = int(word($axis[2], 5))
values = int(word($axis[2], 6))
low = real(word($axis[2], 2))
high = real(word($axis[2], 3))
tick_length = 0
do for [t = 2 : |$ticks|] { tick_length = tick_length + strlen(word($ticks[t], 2)) + 2 }
slanted = tick_length > 110 / columns # they would overlap

# The legend is in several columns where entries are many and short.
longest = 0
do for [c = 2 : |$legend|] { longest = strlen(word($legend[c], 2)) > longest ? strlen(word($legend[c], 2)) : longest }
entries = longest < 25 && names > 3 ? 3 : longest < 45 && names > 3 ? 2 : 1

# The names stand at the ends of the curves instead, where these are apart. Columns of points: see below.
named = longest
direct = panels == 1 && int(word($axis[2], 5)) && int(word($axis[2], 6)) > 1 && names > 1 && names < 9 && !plain && named < 46
array end_x[names]
array end_y[names]
do for [c = 1 : names] { end_x[c] = -1e300; end_y[c] = -1 }
highest = 0
bottom = 0
do for [i = 2 : exists('closer') ? |$points| : 1] {
  do for [k in "5 7 9"] { v = word($points[i], int(k)) eq 'NaN' ? 1e300 : real(word($points[i], int(k))); bottom = bottom == 0 || v < bottom ? v : bottom }
  do for [k in "5 7 10"] { v = word($points[i], int(k)) eq 'NaN' ? 0 : real(word($points[i], int(k))); highest = v > highest ? v : highest }
  if (word($points[i], 6) ne 'NaN') { bottom = -1e300 } # a cross stands on the axis
}
bottom = bottom > 0.6 * highest && bottom < 1e300 ? bottom - 0.25 * (1.04 * highest - bottom) : 0
highest = 0
do for [i = 2 : direct ? |$points| : 1] {
  if (word($points[i], 5) ne 'NaN') {
    c = int(word($points[i], 3))
    highest = real(word($points[i], 5)) > highest ? real(word($points[i], 5)) : highest
    if (real(word($points[i], 4)) >= end_x[c]) { end_x[c] = real(word($points[i], 4)); end_y[c] = real(word($points[i], 5)) }
  }
}
do for [a = 1 : direct ? names : 0] {
  direct = direct && end_y[a] >= 0
  do for [b = a + 1 : names] { direct = direct && abs(end_y[a] - end_y[b]) >= 0.045 * (highest - bottom) }
}
legend = direct || (names < 2 && panels > 1) ? 0 : (names + entries - 1) / entries
longest = 0
do for [t = 2 : |$ticks|] { longest = strlen(word($ticks[t], 2)) > longest ? strlen(word($ticks[t], 2)) : longest }

# In pixels from above: titles, lines of panels (title, plot, ticks), the name of the axis, the legend, notes.
head = 92
title = panels > 1 ? 26 : 8
ticks = 30 + (slanted ? 5 * (longest < 30 ? longest : 30) : 0)
each = title + ticks + (lines == 1 ? 530 : lines == 2 ? 260 : 170)
foot = 40 + 26 * legend + 44
height = canvas(head + lines * each + foot)
each = (height - head - foot) / (1.0 * lines) # whatever --size makes of it
eval terminal(height)
pixels(n) = n / (1.0 * height)

# What there is to draw, and in which panel: the colors of curves, and of those with the other columns, as lists of numbers. The columns of
# points are 1 panel, 2 curve, 3 color, 4 x, 5 y, 6 oom, 7 published, 8 capacity, 9 low, 10 high, 11 given, 12 measured.
array drawn[panels]
array crossed[panels]
array hollow[panels]
array banded[panels]
array wide[panels] # of the banded: by more than one point; of one point the band is a bar
array limited[panels]
array shifted[panels]
array measured[panels]
if (!exists('given')) { given = 0 }
do for [p = 1 : panels] { shifted[p] = ' '; measured[p] = ' ' }
do for [p = 1 : panels] { drawn[p] = ' '; crossed[p] = ' '; hollow[p] = ' '; banded[p] = ' '; wide[p] = ' '; limited[p] = ' ' }
has(i, k) = word($points[i], k) ne 'NaN'
with(list, i) = strstrt(list, ' '.word($points[i], 3).' ') > 0 ? list : list.word($points[i], 3).' '
number_of(i, k) = has(i, k) ? real(word($points[i], k)) : 0
top = most = 0
do for [i = 2 : |$points|] {
  p = int(word($points[i], 1))
  if (has(i, 5)) { drawn[p] = with(drawn[p], i) }
  if (has(i, 6)) { crossed[p] = with(crossed[p], i) }
  if (has(i, 7)) { hollow[p] = with(hollow[p], i) }
  if (has(i, 9) && !(plain && exists('banding'))) { # in characters it would hide curves
    if (strstrt(banded[p], ' '.word($points[i], 3).' ') > 0) { wide[p] = with(wide[p], i) }
    banded[p] = with(banded[p], i)
  }
  if (given && has(i, 11)) { shifted[p] = with(shifted[p], i) }
  if (given && has(i, 12)) { measured[p] = with(measured[p], i) }
  do for [k in given ? "5 6 7 9 10 11 12" : "5 6 7 9 10"] { top = number_of(i, int(k)) > top ? number_of(i, int(k)) : top }
  most = number_of(i, 8) > most ? number_of(i, 8) : most
}
capacity = most > 0 && most < 4 * top # not far above all
if (capacity) {
  top = most > top ? most : top
  do for [i = 2 : |$points|] { limited[int(word($points[i], 1))] = with(limited[int(word($points[i], 1))], i) }
}
ooms = published = sampled = widened = 0
do for [p = 1 : panels] {
  ooms = ooms || strlen(crossed[p]) > 1
  published = published || strlen(hollow[p]) > 1
  sampled = sampled || strlen(banded[p]) > 1
  widened = widened || strlen(wide[p]) > 1
}
top = top > 0 ? (bottom > 0 ? 1 : 1.06) * top : 1

set border 3 linecolor rgb grey
set tics nomirror textcolor rgb grey font small
set grid ytics linetype -1 linecolor rgb faint linewidth 0.5
set yrange [bottom : bottom > 0 ? top + 0.02 * (top - bottom) : top]
if (top >= 1e4) { set format y '%.0s%c' } # 50k
if (logarithmic) { set logscale x 2 }
if (!number) { set xrange [0.6 : values + 0.4] }
if (number && values == 1) { set xrange [low - (low == 0 ? 1 : abs(low) / 2) : low + (low == 0 ? 1 : abs(low) / 2)] }
if (number && values > 1 && logarithmic) { set xrange [low / 1.15 : high * 1.15] }
if (number && values > 1 && !logarithmic) { set xrange [low - 0.06 * (high - low) : high + 0.06 * (high - low)] }
set xtics ()
set for [t = 2 : |$ticks|] xtics add (word($ticks[t], 2) real(word($ticks[t], 1)))
if (slanted) { set xtics rotate by -30 }

notes = (ooms ? 'Cross: out of memory. ' : '').(capacity ? 'Dashed: capacity. ' : '').(published ? 'Hollow: published, '.source.'. ' : '') \
  .(given ? 'Triangle: measured. Dashed: what that makes of the curve. ' : '').(sampled ? (widened ? 'Band' : 'Bar').(exists('banding') ? banding : 's: 90 % of the samples (errors of numbers and noise alone). ') : '') \
  .(panels == 1 && number && values > 1 && changes ? (direct ? 'Behind the names: ' : 'Legend: ').'change over the curve.' : '')
set label 1 over at screen 0.5,1 - pixels(40) center font ',18'
set label 2 wrap(setting, plain ? 76 : 130) at screen 0.5,1 - pixels(strlen(setting) > 130 ? 66 : 76) center textcolor rgb grey
set label 3 wrap(notes, plain ? 76 : 1000) at screen 0.02,pixels(plain && strlen(notes) > 76 ? 40 : 20) textcolor rgb grey font ',11'
of(p, c, name) = column("panel") == p && column("color") == c ? column(name) : NaN
tick(x, t) = t > |$ticks| ? sprintf('%g', x) : real(word($ticks[t], 1)) == x ? word($ticks[t], 2) : tick(x, t + 1)
said(c, x, y) = sprintf('%.4g ', y).what.', '.word($axis[2], 1).' '.tick(x, 2).': '.word($legend[c + 1], 2)
left(p) = 0.085 + 0.915 / columns * ((p - 1) % columns)
right(p) = left(p) + 0.915 / columns - (columns > 1 ? 0.045 : 0.02) - (direct ? (7.0 * named + 20) / 1200 : 0)
do for [c = 1 : direct ? names : 0] { set label 10 + c word($legend[c + 1], 2) at end_x[c],end_y[c] left offset 1.2,0 textcolor linetype c font ',11' }
upper(p) = 1 - pixels(head + title + each * ((p - 1) / columns))
lower(p) = upper(p) - pixels(each - title - ticks)
set label 5 what.(bottom > 0 ? '  (axis does not start at 0)' : '') at screen 0.018,0.5 * (upper(1) + lower(panels)) center rotate
set label 6 word($axis[2], 1) at screen direct ? 0.5 * (left(1) + right(1)) : 0.53,pixels(foot - 14) center

if (panels > 1) { set multiplot }
do for [p = 1 : panels] {
  set lmargin at screen left(p)
  set rmargin at screen right(p)
  set tmargin at screen upper(p)
  set bmargin at screen lower(p)
  set label 4 (panels > 1 ? word($panels[p + 1], 2) : '') at graph 0.5,1 offset 0,0.6 center font small
  if (!direct && (p == 1 && names > 1 || panels == 1)) {
    set key at screen 0.05,pixels(44) left bottom reverse Left spacing 1.3 samplen 2 maxcols entries maxrows legend width 1
  } else {
    unset key
  }
  # Only what there is: gnuplot warns of a line without points.
  what_there_is = ''
  do for [c in banded[p]] {
    what_there_is = what_there_is.(strstrt(wide[p], ' '.c.' ') > 0 \
      ? sprintf(' $points using "x":(of(%d, %s, "low")):(of(%d, %s, "high")) ', p, c, p, c) \
        .sprintf('with filledcurves linetype %s fillstyle transparent solid 0.2 noborder notitle,', c) \
      : sprintf(' $points using "x":(of(%d, %s, "y")):(of(%d, %s, "low")):(of(%d, %s, "high")) ', p, c, p, c, p, c) \
        .sprintf('with yerrorbars linecolor %s pointtype 0 linewidth 2 notitle,', c))
  }
  do for [c in drawn[p]] {
    what_there_is = what_there_is.sprintf(' $points using "x":(of(%d, %s, "y")) with linespoints linetype %s linewidth 2 pointsize %g notitle,', \
      p, c, c, columns < 3 ? 1.3 : 0.8)
  }
  do for [c in crossed[p]] {
    what_there_is = what_there_is.sprintf(' $points using "x":(of(%d, %s, "oom")) with points linecolor %s pointtype 2 pointsize 1.4 linewidth 2 notitle,', p, c, c)
  }
  do for [c in shifted[p]] {
    what_there_is = what_there_is.sprintf(' $points using "x":(of(%d, %s, "given")) with lines linetype %s linewidth 2 dashtype 2 notitle,', p, c, c)
  }
  do for [c in measured[p]] {
    what_there_is = what_there_is.sprintf(' $points using "x":(of(%d, %s, "measured")) with points linecolor %s pointtype 9 pointsize %g notitle,', \
      p, c, c, columns < 3 ? 2.2 : 1.6)
  }
  do for [c in hollow[p]] {
    what_there_is = what_there_is.sprintf(' $points using "x":(of(%d, %s, "published")) with points linecolor %s pointtype 6 pointsize %g linewidth 2 notitle,', \
      p, c, c, columns < 3 ? 2.4 : 1.6)
  }
  # On a page: what a point is, where the pointer stands on it.
  if (hover) { do for [c in drawn[p]] {
    what_there_is = what_there_is.sprintf(' $points using "x":(of(%d, %s, "y")):(said(%s, column("x"), column("y"))) with labels hypertext point pointtype 7 pointsize 2 linecolor rgb "#ff000000" notitle,', p, c, c)
  } }
  do for [c in limited[p]] {
    what_there_is = what_there_is.sprintf(' $points using "x":(of(%d, %s, "capacity")) with lines linecolor rgb grey linewidth 1 dashtype 3 notitle,', p, c)
  }
  eval 'plot'.what_there_is.' for [c = 1 : names] keyentry with linespoints linetype c linewidth 2 pointsize 1.3 title word($legend[c + 1], 2)'
  unset label 1
  unset label 2
  unset label 3
  unset label 5
  unset label 6
}
if (panels > 1) { unset multiplot }
