# Above: the share of the time that trains, with its band. Below, where there is one curve: what the rest goes to, parts that add up.
#include "style.gp"
curves = |$curves| - 1
single = curves == 1 && !plain
height = canvas(single ? 940 : 620 + 26 * curves)
eval terminal(height)
array names = ['checkpoints', 'lost work', 'detection', 'waiting for hosts', 'restart', 'fewer hosts', 'slow hosts']
array parts = ['checkpoint', 'lost_work', 'detection', 'waiting', 'restart', 'shrunk', 'slowed']
of(c, name) = column("curve") == c ? column(name) : NaN
below(i) = i == 0 ? 0 : below(i - 1) + column(parts[i])
stats $points using "low" name 'low' nooutput
stats $points using "high" name 'high' nooutput
stats $points using "x" name 'x' nooutput
stats $points using "shrunk" name 'shrunk' nooutput
stats $points using "slowed" name 'slowed' nooutput
n_parts = slowed_max > 0 ? 7 : shrunk_max > 0 ? 6 : 5 # only elastic jobs shrink, and slow hosts are off by default
unit = low_min > 98 ? 0.1 : 1 # of the axis
least = unit * floor((low_min - 0.15 * (100 - low_min)) / unit)

set border 3 linecolor rgb grey
set tics nomirror textcolor rgb grey
set grid linetype -1 linecolor rgb faint linewidth 0.5
if (x_max > x_min) { set logscale x 2; set xrange [x_min / 1.15 : x_max * 1.15] } else { set xrange [0.5 * x_min : 1.5 * x_min] }
if (|$points| < 40) { set xtics () }
do for [i = 2 : |$points| < 40 ? |$points| : 1] { set xtics add (sprintf('%g', 0.01 * int(100 * real(word($points[i], 2)) + 0.5)) real(word($points[i], 2))) }
set yrange [least < 0 ? 0 : least : 100]
set lmargin 10
set rmargin single ? 24 : 4
set label 1 'Time that trains, by '.word($heading[2], 3) at screen 0.5,1 - 40.0 / height center font ',18'
set label 2 word($heading[2], 1) at screen 0.5,1 - 74.0 / height center textcolor rgb grey
set label 3 word($heading[2], 4) at screen 0.02,20.0 / height textcolor rgb grey font ',11'
set ylabel 'training, % of the time'
set tmargin at screen 1 - 100.0 / height
if (single) { set multiplot; set bmargin at screen 470.0 / height; unset key } else {
  set bmargin at screen (130.0 + 26 * curves) / height
  set xlabel word($heading[2], 2)
  set key at screen 0.08,(56.0 + 26 * curves) / height left top reverse Left samplen 2
}
if (single) { set label 4 'trains' at graph 1.02,first real(word($points[|$points|], 3)) left textcolor rgb blue }
plot for [c = 1 : curves] $points using (of(c, "x")):(of(c, "low")):(of(c, "high")) with filledcurves linetype c fillstyle transparent solid 0.2 noborder notitle, \
  for [c = 1 : curves] $points using (of(c, "x")):(of(c, "goodput")) with linespoints linetype c linewidth 2 title word($curves[c + 1], 1), \
  for [c = 1 : curves == 1] $points using "x":"goodput":(|$points| > 20 ? '' : sprintf('%.1f', column("goodput"))) with labels offset 0,1 font ',10' textcolor rgb grey notitle
if (single) {
  do for [i = 1 : 4] { unset label i }
  set tmargin at screen 420.0 / height
  set bmargin at screen 110.0 / height
  set yrange [0 : *]
  set ylabel 'not training, % of the time'
  set xlabel word($heading[2], 2)
  set key at graph 1.02,graph 1 left top reverse Left samplen 1 spacing 1.4 invert
  array shades = [sky, orange, green, yellow, pink, amber, grey]
  if (x_max > x_min) {
    plot for [i = 1 : n_parts] $points using "x":(below(i - 1)):(below(i)) with filledcurves linecolor rgb shades[i] fillstyle solid 0.9 noborder title names[i]
  } else {
    plot for [i = 1 : n_parts] $points using "x":(below(i)):(0.8 * column("x")):(1.2 * column("x")):(below(i - 1)):(below(i)) with boxxyerror \
      linecolor rgb shades[i] fillstyle solid 0.9 noborder title names[i]
  }
  unset multiplot
}
