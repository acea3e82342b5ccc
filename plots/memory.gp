# One horizontal bar a point, stacked from what stays (left) to what comes and goes (right); curves over a setting (curves.gp) where one was
# asked for, or of many points.
#include "style.gp"
if (int(word($heading[2], 3))) {
what = 'HBM of a GPU, GiB'
over = what.', over '.word($axis[2], 1)
setting = word($heading[2], 1)
source = word($heading[2], 4)
changes = 0
#include "curves.gp"
} else {
array categories = ['parameters', 'gradients', 'optimizer', 'activations', 'gathered', 'buffers', 'nccl', 'context']
array colours = [blue, sky, '#7f9fbf', amber, orange, pink, '#999999', '#cccccc']
more = 0
least = 280
#include "bars.gp"
short = 0 # a bar that is out of memory needs room for its note
do for [b = 1 : bars] { short = short || strstrt($bars[b + 1], '"OOM') }
before(i) = i == 0 ? 0 : before(i - 1) + column(categories[i])
published = int(word($heading[2], 2))
set title 'HBM of a GPU by what it is used for' font ',18' offset 0,1
set label 2 'At the peak of allocated memory; where a point is out of memory, what it would need.'. \
  (published && !plain ? ' Published: allocated, without context and NCCL.' : '') \
  at screen 0.02,20.0 / height textcolor rgb grey font ',11'
if (plain) { unset label 2 }
set bmargin plain ? 9 : 6
right = plain ? 4 : 20
set rmargin right
share = (short ? 175.0 : 40.0) / (1200 - 11.5 * (left + right)) # of the width for notes, in pixels of 1200
share = plain ? (short ? 0.3 : 0.05) : share < 0.7 ? share : 0.7
set xlabel 'GiB'
set offsets 0, graph share / (1 - share), 0, 0

plot for [i = 1 : |categories|] $bars \
    using (before(i - 1)):"place":(before(i - 1)):(before(i)):(column("place") - 0.35):(column("place") + 0.35) \
    with boxxyerror linecolor rgb colours[i] title categories[i], \
  $bars using "capacity":(column("place") - 0.5):(0):(1) with vectors nohead linecolor rgb 'black' dashtype solid title 'capacity', \
  $bars using "published":"place" with points pointtype 12 pointsize 1.8 linewidth 2 linecolor rgb 'black' \
    title (published ? 'published' : ''), \
  $bars using (before(|categories|)):"place":"note" with labels left offset 1,0 font ',11' notitle
}
