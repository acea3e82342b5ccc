# Two panels a source: the error against the number of GPUs (left), and against the share of the predicted step that is exposed communication and bubble (right).
# All panels have the same axes. Orange: rows that a fit rests on. What is more than 60 % off is drawn as a triangle at the edge.
#include "style.gp"
sources = |$sources| - 1
lines = (sources + 1) / 2
height = canvas(145 + 200 * lines)
eval terminal(height)
stats $runs using "gpus" name 'gpus' nooutput
of(place, is_fitted, is_beyond, name) = column("place") == place && column("fitted") == is_fitted && column("beyond") == is_beyond ? column(name) : NaN

set border 3 linecolor rgb grey
set tics nomirror textcolor rgb grey font ',9'
set grid linetype -1 linecolor rgb faint linewidth 0.5
unset key
set yrange [-66 : 66]
set ytics 30
set lmargin 7
set rmargin 1.5
set tmargin 3
set bmargin 3.2
set multiplot layout lines,4 title 'Published runs: simulated / measured - 1, %' font ',18' margins 0.05,0.985,55.0 / height,1 - 140.0 / height spacing 0.04,80.0 / height
set label 1 word($heading[2], 1) at screen 0.5,1 - 42.0 / height center font ',12' textcolor rgb grey
set label 4 'Left: over GPUs; right: over exposed communication and bubble, % of the step' at screen 0.5,1 - 62.0 / height center font ',12' textcolor rgb grey
do for [s = 1 : sources] {
  do for [panel = 1 : 2] {
    if (panel == 1) {
      across = 'gpus'
      set logscale x 2
      set xrange [gpus_min / 1.5 : gpus_max * 1.5]
      set xtics (1, 8, 64, 512, 4096, 32768)
      set label 2 word($sources[s + 1], 1) at graph 0,1.2 left font ',10'
      set label 3 word($sources[s + 1], 2) at graph 0,1.06 left font ',9' textcolor rgb grey
    } else {
      across = 'waiting'
      unset logscale x
      set xrange [-2 : 102]
      set xtics 25
      unset label 2
      unset label 3
    }
    if (s > 1 || panel > 1) { unset label 1; unset label 4 }
    plot 0 with lines linecolor rgb grey, 10 with lines dashtype 2 linecolor rgb '#aaaaaa', -10 with lines dashtype 2 linecolor rgb '#aaaaaa', \
      for [f = 0 : 1] $runs using (of(s, f, 0, across)):"error" with points pointtype 7 pointsize 0.5 linecolor rgb (f ? fitted : unseen), \
      for [f = 0 : 1] $runs using (of(s, f, 1, across)):"error" with points pointtype 9 pointsize 0.7 linecolor rgb (f ? fitted : orange)
  }
}
unset multiplot
