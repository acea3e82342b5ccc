# Areas that stand on each other, from the axis up: what lives for the whole run first, activations last. The line is what PyTorch has reserved.
#include "style.gp"
set title 'What a GPU''s memory holds over a step' font ',18' offset 0,1
set label 1 word($heading[2], 1) at graph 0.5,1.03 center textcolor rgb grey
set tmargin 5
set rmargin 18
set border 3 linecolor rgb grey
set tics nomirror textcolor rgb grey
set grid ytics linetype -1 linecolor rgb faint linewidth 0.5
# In the order that the host issues them, ops are alike in width: most of them may be issued in an instant, far ahead of the GPU.
set xlabel 'ops, in the order that the host issues them, and when it does: ms since the first'
set xrange [0 : word($ticks[|$ticks|], 1)]
set xtics scale 0.5 ()
set for [i = 2 : |$ticks|] xtics add (word($ticks[i], 2) word($ticks[i], 1))
set ylabel 'GiB'
set yrange [0:*]
set key outside right top Left reverse invert samplen 1 textcolor rgb grey
set style fill solid 0.85 noborder
plot $use using "sample":(0):"parameters" with filledcurves linecolor rgb blue title 'parameters', \
  $use using "sample":"parameters":"optimizer" with filledcurves linecolor rgb '#7f9fbf' title 'optimizer', \
  $use using "sample":"optimizer":"gradients" with filledcurves linecolor rgb sky title 'gradients', \
  $use using "sample":"gradients":"gathered" with filledcurves linecolor rgb orange title 'gathered', \
  $use using "sample":"gathered":"buffers" with filledcurves linecolor rgb pink title 'buffers', \
  $use using "sample":"buffers":"activations" with filledcurves linecolor rgb amber title 'activations', \
  $use using "sample":"reserved" with steps linecolor rgb grey title 'reserved'
