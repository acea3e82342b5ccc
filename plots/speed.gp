# One horizontal bar a point; curves over a setting (curves.gp) where one was asked for, or of many points.
#include "style.gp"
if (int(word($heading[2], 4))) {
what = word($heading[2], 2).' per GPU'
over = what.' over '.word($axis[2], 1)
setting = word($heading[2], 1)
source = ''
changes = 0
#include "curves.gp"
} else {
more = 0
least = 160
#include "bars.gp"
sampled = int(word($heading[2], 3))
set title 'Throughput of a GPU' font ',18' offset 0,1
set label 2 'MFU: of the dense peak of the precision.'. \
  (sampled ? ' Lines: 90 % of the samples (errors of numbers and noise alone).' : '') \
  at screen 0.02,20.0 / height textcolor rgb grey font ',11'
set bmargin 6
set rmargin 4
set xlabel word($heading[2], 2).' per GPU'
set offsets 0, graph 0.25, 0, 0
fastest = 0
do for [b = 2 : |$bars|] { fastest = real(word($bars[b], 4)) > fastest ? real(word($bars[b], 4)) : fastest }
if (fastest == 0) { set xrange [0 : 1] } # all out of memory
unset key

plot $bars using (0):"place":(0):"speed":(column("place") - 0.35):(column("place") + 0.35) with boxxyerror linecolor rgb simulated, \
  for [i = 1 : sampled > 0] $bars using "speed":"place":"low":"high" with xerrorbars pointtype -1 linewidth 3 linecolor rgb 'black', \
  $bars using "beyond":"place":"note" with labels left offset 1,0 font ',11'
}
