# Above: what is left of the speed of a GPU, with its band. Below: what a step is made of, parts that add up.
#include "style.gp"
height = canvas(900)
eval terminal(height)
array names = ['contention', 'exposed comm', 'for ranks', 'bubble', 'host', 'other idle']
array parts = ['contention', 'exposed', 'ranks', 'bubble', 'host', 'idle']
array shades = [amber, orange, sky, yellow, pink, quiet]
below(i) = i == 0 ? 0 : below(i - 1) + column(parts[i])
banded = int(word($heading[2], 3))
stats $points using "x" name 'x' nooutput
least = 100
do for [i = 2 : |$points|] { value = real(word($points[i], banded ? 3 : 2)); least = value < least ? value : least }
least = 10 * floor(0.1 * (least - 0.15 * (100 - least)))

set border 3 linecolor rgb grey
set tics nomirror textcolor rgb grey
set grid linetype -1 linecolor rgb faint linewidth 0.5
if (x_max > x_min) { set logscale x 2; set xrange [x_min / 1.15 : x_max * 1.15] } else { set xrange [0.5 * x_min : 1.5 * x_min] }
set xtics ()
do for [i = 2 : |$points|] { set xtics add (word($points[i], 1) real(word($points[i], 1))) }
set lmargin 10
set rmargin 24
set label 1 'A traced step as the cluster grows' at screen 0.5,1 - 40.0 / height center font ',18'
set label 2 word($heading[2], 1) at screen 0.5,1 - 74.0 / height center textcolor rgb grey
set label 3 word($heading[2], 2) at screen 0.02,20.0 / height textcolor rgb grey font ',11'
set multiplot
set tmargin at screen 1 - 100.0 / height
set bmargin at screen 460.0 / height
set ylabel 'speed of a GPU, % of the first'
set yrange [least < 0 ? 0 : least : *]
unset key
plot for [b = 1 : banded] $points using "x":"low":"high" with filledcurves linetype 1 fillstyle transparent solid 0.2 noborder notitle, \
  $points using "x":"speed" with linespoints linetype 1 linewidth 2 notitle, \
  $points using "x":"speed":(sprintf('%.1f', column("speed"))) with labels offset 0,1 font ',10' textcolor rgb grey notitle
do for [i = 1 : 3] { unset label i }
set tmargin at screen 410.0 / height
set bmargin at screen 110.0 / height
set yrange [0 : *]
set ylabel 'not kernels alone, % of the step'
set xlabel 'GPUs'
set key at graph 1.02,graph 1 left top reverse Left samplen 1 spacing 1.4 invert
if (x_max > x_min) {
  plot for [i = 1 : 6] $points using "x":(below(i - 1)):(below(i)) with filledcurves linecolor rgb shades[i] fillstyle solid 0.9 noborder title names[i]
} else {
  plot for [i = 1 : 6] $points using "x":(below(i)):(0.8 * column("x")):(1.2 * column("x")):(below(i - 1)):(below(i)) with boxxyerror \
    linecolor rgb shades[i] fillstyle solid 0.9 noborder title names[i]
}
unset multiplot
