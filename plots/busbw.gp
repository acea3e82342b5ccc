# Small multiples: points measured, line predicted. A panel says what ran (nodes x GPUs), on which cluster, and the median error from 1 MiB on.
#include "style.gp"
panels = |$panels| - 1
columns = panels == 1 ? 1 : panels > 42 ? 8 : ceil(sqrt(1.5 * panels))
lines = (panels + columns - 1) / columns
of(panel, name) = column("panel") == panel ? column(name) : NaN
height = canvas(lines < 8 ? 800 : 112 + 100 * lines)
eval terminal(height)
down(n) = 1 - n / (1.0 * height) # pixels from above

set border 3 linecolor rgb grey linewidth 0.5
set tics nomirror scale 0.3 textcolor rgb grey font ',7'
set grid linetype -1 linecolor rgb faint linewidth 0.3
set logscale xy
set xtics offset 0,0.6 ('1 kB' 1e3, '1 MB' 1e6, '1 GB' 1e9)
set ytics offset 0.8,0 ('0.01' 0.01, '1' 1, '100' 100)
set xrange [8 : 4e10]
set yrange [0.001 : 3000]
unset key
set multiplot layout lines, columns margins screen 0.035, 0.99, 24.0 / height, down(112) spacing screen 0.022, 56.0 / height
set label 1 'Bus bandwidth of collectives by message size, GB/s: nccl-tests (points) and predicted (lines)' at screen 0.5,down(24) center font ',16'
set label 2 word($heading[2], 1) at screen 0.5,down(52) center textcolor rgb grey
do for [p = 1 : panels] {
  set label 3 word($panels[p + 1], 1) at graph 0,1 offset 0,1.5 font ',8' textcolor rgb 'black'
  set label 4 word($panels[p + 1], 2) at graph 0,1 offset 0,0.5 font ',7' textcolor rgb grey
  set label 5 word($panels[p + 1], 3) at graph 0.97,0 offset 0,0.9 right font ',9' textcolor rgb simulated
  plot $points using (of(p, "bytes")):(of(p, "measured")) with points pointtype 7 pointsize 0.35 linecolor rgb measured, \
    $points using (of(p, "bytes")):(of(p, "predicted")) with lines linewidth 1.2 linecolor rgb simulated
  unset label 1
  unset label 2
}
unset multiplot
