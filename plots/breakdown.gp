# One horizontal bar a point; the parts add up to the step.
array colours = ['#0072B2', '#F0E442', '#009E73', '#D55E00', '#E69F00', '#CC79A7', '#bbbbbb']
parts = |$parts| - 1
grey = '#555555'
bars = |$bars| - 1
# What tells bars apart beside model, strategy, batch and GPUs stands on a second line.
varied(b) = word($bars[b + 1], 3) eq '-' ? '' : word($bars[b + 1], 3)
label(b) = word($bars[b + 1], 2).(varied(b) eq '' ? '' : "\n".varied(b))
longest = 20
lines = 0
do for [b = 1 : bars] {
  longest = strlen(word($bars[b + 1], 2)) > longest ? strlen(word($bars[b + 1], 2)) : longest
  longest = strlen(varied(b)) > longest ? strlen(varied(b)) : longest
  lines = lines + (varied(b) eq '' ? 1.3 : 2.3)
}
before(i) = i == 0 ? 0 : before(i - 1) + column(sprintf('part_%d_s', i))

height = int(860 > 280 + 18 * lines ? 860 : 280 + 18 * lines) # the labels of many bars do not fit in the usual one
eval terminal(height)

set title 'Where the time of a step goes' font ',18' offset 0,1
set label 1 word($heading[2], 1) at graph 0.5,graph 1 offset 0,0.9 center textcolor rgb grey
set label 2 wrap(word($heading[2], 2), 150) at screen 0.02,96.0 / height font ',11'
set label 3 'Time of the compute stream, mean over ranks and steps; what collectives cost it is divided as their own time is. Points out of memory are left out.' \
  at screen 0.02,20.0 / height textcolor rgb grey font ',11'
set tmargin 5
set bmargin 9.5
set lmargin 0.78 * longest + 2 # the margin counts in a larger font than the labels'
set rmargin 29
set border 1 linecolor rgb grey
set xtics nomirror textcolor rgb grey
set grid xtics linetype -1 linecolor '#dddddd' linewidth 0.5
set xlabel 'seconds a step'
set xrange [0 : *]
set offsets 0, graph 0.12, 0, 0
set yrange [bars + 0.6 : 0.4]
set ytics scale 0 textcolor 'black' font ',11' ()
set for [b = 1 : bars] ytics add (label(b) b)
set key at graph 1.03,graph 1 left top reverse Left spacing 1.4 samplen 1
set style fill solid 1 noborder

plot for [i = 1 : parts] $bars \
    using (before(i - 1)):"place":(before(i - 1)):(before(i)):(column("place") - 0.35):(column("place") + 0.35) \
    with boxxyerror linecolor rgb colours[i] title word($parts[i + 1], 1), \
  $bars using "step":"place":(sprintf('%.2f s', column("step"))) with labels left offset 1,0 font ',11' notitle
