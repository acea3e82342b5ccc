# Above: bus bandwidth by size, with what NCCL's rule chooses from where on. Below: how far the predicted time is off.
#include "style.gp"
set border 3 linecolor rgb grey
set tics nomirror textcolor rgb grey
set grid linetype -1 linecolor rgb faint linewidth 0.5
set logscale x
set xtics ('10 B' 10, '100 B' 100, '1 kB' 1e3, '10 kB' 1e4, '100 kB' 1e5, '1 MB' 1e6, '10 MB' 1e7, '100 MB' 1e8, '1 GB' 1e9, '10 GB' 1e10)
stats $points using "bytes" name 'size' nooutput
set xrange [size_min / 1.5 : size_max * 1.5]
set multiplot
set lmargin at screen 0.11
set rmargin at screen 0.97
set tmargin at screen 0.86
set bmargin at screen 0.40
set label 1 'Collectives: nccl-tests and predicted' at screen 0.5,0.96 center font ',18'
set label 2 word($heading[2], 1) at screen 0.5,0.91 center textcolor rgb grey font ',11'
set logscale y
set format y '%g'
set ylabel 'bus bandwidth, GB/s'
set key top left
plot $points using "bytes":"measured" with points pointtype 7 pointsize 1.2 linecolor rgb measured title 'measured', \
  $points using "bytes":"predicted" with linespoints linewidth 2 pointtype 7 pointsize 0.4 linecolor rgb simulated title 'predicted', \
  $choices using "bytes":(column("predicted") * 0.35 ** (1 + column("line"))):"choice" with labels left offset 0.3,0 font ',9' textcolor rgb simulated notitle
unset label 1
unset label 2
unset key
unset logscale y
set tmargin at screen 0.31
set bmargin at screen 0.08
set ylabel 'error of time, %'
set title word($heading[2], 2) textcolor rgb grey font ',11' offset 0,-0.5
set xzeroaxis linetype 1 linecolor rgb grey
plot $points using "bytes":"error" with impulses linewidth 3 linecolor rgb simulated
unset multiplot
