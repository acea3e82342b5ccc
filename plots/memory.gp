# One horizontal bar a point, stacked from what stays (left) to what comes and goes (right).
array categories = ['parameters', 'gradients', 'optimizer', 'activations', 'gathered', 'buffers', 'nccl', 'context']
array colours = ['#0072B2', '#56B4E9', '#7f9fbf', '#E69F00', '#D55E00', '#CC79A7', '#999999', '#cccccc']
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
short = 0 # a bar that is out of memory needs room for its note
do for [b = 1 : bars] { short = short || strstrt($bars[b + 1], '"OOM') }
before(i) = i == 0 ? 0 : before(i - 1) + column(categories[i])

height = int(800 > 220 + 18 * lines ? 800 : 220 + 18 * lines) # the labels of many bars do not fit in the usual one
eval terminal(height)

set title 'HBM of a GPU by what it is used for' font ',18' offset 0,1
set label 1 word($heading[2], 1) at graph 0.5,graph 1 offset 0,0.9 center textcolor rgb grey
published = int(word($heading[2], 2))
set label 2 'At the peak of allocated memory; where a point is out of memory, what it would need.'. \
  (published ? ' Published: allocated, without context and NCCL.' : '') \
  at screen 0.02,20.0 / height textcolor rgb grey font ',11'
set tmargin 5
set bmargin 6
left = 0.78 * longest + 2 # the margin counts in a larger font than the labels'
right = 20
set lmargin left
set rmargin right
share = (short ? 175.0 : 40.0) / (1200 - 11.5 * (left + right)) # of the width for notes, in pixels of 1200
share = share < 0.7 ? share : 0.7
set border 1 linecolor rgb grey
set xtics nomirror textcolor rgb grey
set grid xtics linetype -1 linecolor '#dddddd' linewidth 0.5
set xlabel 'GiB'
set xrange [0 : *]
set offsets 0, graph share / (1 - share), 0, 0
set yrange [bars + 0.6 : 0.4]
set ytics scale 0 textcolor 'black' font ',11' ()
set for [b = 1 : bars] ytics add (label(b) b)
set key at graph 1.03,graph 1 left top reverse Left spacing 1.4 samplen 1
set style fill solid 1 noborder

plot for [i = 1 : |categories|] $bars \
    using (before(i - 1)):"place":(before(i - 1)):(before(i)):(column("place") - 0.35):(column("place") + 0.35) \
    with boxxyerror linecolor rgb colours[i] title categories[i], \
  $bars using "capacity":(column("place") - 0.5):(0):(1) with vectors nohead linecolor rgb 'black' dashtype solid title 'capacity', \
  $bars using "published":"place" with points pointtype 12 pointsize 1.8 linewidth 2 linecolor rgb 'black' \
    title (published ? 'published' : ''), \
  $bars using (before(|categories|)):"place":"note" with labels left offset 1,0 font ',11' notitle
