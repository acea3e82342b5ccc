# One point a size of a table. Band: +-10 %, what is asked for from 1 MiB on.
#include "style.gp"
of(fitted, name) = column("fitted") == fitted ? column(name) : NaN

set title 'What the fit of NCCL leaves' font ',18' offset 0,1
set label 1 word($heading[2], 1) at graph 0.5,1.04 center textcolor rgb grey
set border 3 linecolor rgb grey
set tics nomirror textcolor rgb grey
set grid linetype -1 linecolor rgb faint linewidth 0.5
set tmargin 5
set xlabel 'message size'
set ylabel 'predicted / measured time'
set logscale x 2
set logscale y
set xtics ('8 B' 8, '1 KiB' 1024, '64 KiB' 65536, '1 MiB' 1048576, '64 MiB' 67108864, '1 GiB' 1073741824, '16 GiB' 17179869184)
set ytics (0.2, 0.5, 0.8, 0.9, 1, 1.1, 1.25, 2, 4)
set yrange [0.15 : 4]
set xrange [6 : 5e10]
set object 1 rectangle from graph 0, first 0.9 to graph 1, first 1.1 fillcolor rgb '#f0f0f0' fillstyle solid noborder behind
set key top right
left = 0
fit = 0
median_left = 0
median_fit = 0
do for [i = 2 : |$points|] { if (int(word($points[i], 1))) { fit = 1 } else { left = 1 } }
do for [i = 2 : |$medians|] { if (int(word($medians[i], 1))) { median_fit = 1 } else { median_left = 1 } }
# gnuplot warns of a series without points.
drawn = '1 with lines linecolor rgb grey notitle'
if (left) { drawn = drawn.', $points using (of(0, "bytes")):(of(0, "ratio")) with points pointtype 6 pointsize 0.6 linecolor rgb unseen title "left out"' }
if (fit) { drawn = drawn.', $points using (of(1, "bytes")):(of(1, "ratio")) with points pointtype 7 pointsize 0.6 linecolor rgb fitted title "fitted"' }
if (median_left) { drawn = drawn.', $medians using (of(0, "bytes")):(of(0, "ratio")) with lines linewidth 3 linecolor rgb unseen notitle' }
if (median_fit) { drawn = drawn.', $medians using (of(1, "bytes")):(of(1, "ratio")) with lines linewidth 3 linecolor rgb fitted notitle' }
eval 'plot '.drawn
