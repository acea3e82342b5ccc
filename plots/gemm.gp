# A panel a GPU and number format, one point a measured product. Band: +-25 %, what 90 % of the held-out ones have to be within.
#include "style.gp"
light = '#aaaaaa'
panels = |$panels| - 1
columns = panels == 1 ? 1 : 2
height = canvas(panels < 7 ? 800 : 130 + 220 * ((panels + 1) / 2)) # many GPUs need more
eval terminal(height)
lines = (panels + columns - 1) / columns
of(panel, use, name) = column("panel") == panel && strcol("use") eq use ? column(name) : NaN

set border 3 linecolor rgb grey
set tics nomirror textcolor rgb grey
set grid linetype -1 linecolor rgb faint linewidth 0.5
set key bottom right
set logscale xy
set multiplot layout lines, columns margins screen 0.09, 0.98, 72.0 / height, 1 - 128.0 / height spacing screen 0.09, 104.0 / height
set label 1 'Matrix products: predicted against measured rate' at screen 0.5,1 - 28.0 / height center font ',18'
set label 2 word($heading[2], 1) at screen 0.5,1 - 60.0 / height center font ',9' textcolor rgb grey
do for [p = 1 : panels] {
  set label 3 word($panels[p + 1], 1) at graph 0,1 offset 0,1.6
  set label 4 word($panels[p + 1], 2) at graph 0,1 offset 0,0.6 font ',9' textcolor rgb unseen
  most = real(word($panels[p + 1], 3))
  set xrange [most / 150 : most * 1.3]
  set yrange [most / 150 : most * 1.3]
  set xlabel (p > panels - columns ? 'measured, TFLOPS' : '')
  set ylabel (p % columns == 1 ? 'predicted, TFLOPS' : '')
  plot '+' using 1:(0.75 * $1):(1.25 * $1) with filledcurves fillcolor rgb '#f0f0f0' notitle, \
    x with lines linecolor rgb grey notitle, \
    $points using (of(p, "narrow", "measured")):(of(p, "narrow", "predicted")) with points pointtype 2 pointsize 0.5 linecolor rgb light title 'narrow', \
    $points using (of(p, "fitted", "measured")):(of(p, "fitted", "predicted")) with points pointtype 7 pointsize 0.4 linecolor rgb fitted title 'fitted', \
    $points using (of(p, "held out", "measured")):(of(p, "held out", "predicted")) with points pointtype 6 pointsize 0.7 linecolor rgb unseen title 'held out'
  unset label 1
  unset label 2
}
unset multiplot
