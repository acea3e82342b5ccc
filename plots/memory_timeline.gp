# Areas that stand on each other, from the axis up: what lives for the whole run first, activations last. The line is what PyTorch has reserved.
#include "style.gp"
set title 'What a GPU''s memory holds over a step' font ',18' offset 0,1
set label 1 word($heading[2], 1) at graph 0.5,1.03 center textcolor rgb grey
set tmargin 5
set rmargin 18
set border 3 linecolor rgb grey
set tics nomirror textcolor rgb grey
set grid ytics linetype -1 linecolor rgb faint linewidth 0.5
# Most ops may be issued in an instant, far ahead of the GPU.
set xlabel 'ms since the host issued the first op of the step (it allocates as it issues, ahead of the GPU)'
set xrange [0 : *] noextend
set ylabel 'GiB'
set yrange [0:*]
set key outside right top Left reverse invert samplen 1 textcolor rgb grey
set style fill solid 0.85 noborder
plot $use using "ms":(0):"parameters" with filledcurves linecolor rgb blue title 'parameters', \
  $use using "ms":"parameters":"optimizer" with filledcurves linecolor rgb '#7f9fbf' title 'optimizer', \
  $use using "ms":"optimizer":"gradients" with filledcurves linecolor rgb sky title 'gradients', \
  $use using "ms":"gradients":"gathered" with filledcurves linecolor rgb orange title 'gathered', \
  $use using "ms":"gathered":"buffers" with filledcurves linecolor rgb pink title 'buffers', \
  $use using "ms":"buffers":"activations" with filledcurves linecolor rgb amber title 'activations', \
  $use using "ms":"reserved" with steps linecolor rgb grey title 'reserved', \
  $peak using "ms":"total":"text" with labels point pointtype 7 pointsize 0.7 linecolor rgb 'black' left offset 1.2,0 font ',11' notitle
