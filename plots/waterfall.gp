# Bars from the small cluster down to the large one: red takes throughput away, green gives it back. No axis starts at 0.
#include "style.gp"
panels = |$panels| - 1
columns = panels < 3 ? 1 : panels < 7 ? 2 : 3
lines = (panels + columns - 1) / columns
small = panels < 3 ? ',11' : panels < 7 ? ',9' : ',7'

set border 3 linecolor rgb grey
set tics nomirror textcolor rgb grey font small
if (columns > 1) set xtics rotate by -30
set grid ytics linetype -1 linecolor rgb faint linewidth 0.5
unset key
set style fill solid 0.9 noborder
set boxwidth 0.7
half = 0.35
rgb_of(name) = int('0x'.name[2:*])
color(a, b) = rgb_of(b <= a ? loss : gain)
steps = (|$steps| - 1) / panels
ends = 2

set multiplot layout lines, columns margins screen 0.07, columns > 1 ? 0.965 : 0.985, columns > 1 ? 0.15 : 0.14, columns > 1 ? 0.84 : 0.86 spacing screen 0.06, columns > 1 ? 0.13 : 0.1
set label 1 'Why throughput falls as the cluster grows' at screen 0.5,0.97 center font ',18'
set label 4 'TFLOPS per GPU' at screen 0.015,0.46 center rotate
set label 6 wrap(word($heading[2], 2), 150) at screen 0.02,0.07 font ',11'
set label 2 word($heading[2], 1).'; axes do not start at 0' at screen 0.5,0.93 center textcolor rgb grey
do for [p = 1 : panels] {
  places = real(word($panels[p + 1], 4))
  high = real(word($panels[p + 1], 5))
  low = real(word($panels[p + 1], 6))
  margin = 0.25 * (high - low) + 1e-3 * high
  floor_ = low - margin
  above = 0.04 * lines * (high - floor_)
  set yrange [floor_ : high + margin]
  set xrange [-0.6 : places + 0.6]
  first = word($panels[p + 1], 2)
  second = word($panels[p + 1], 3)
  if (columns == 1 && second ne ' ') {
    first = first.', '.second
    second = ' '
  }
  set label 3 first at graph 0.5,1 offset 0,(second eq ' ' ? 0.6 : 1.4) center font small textcolor rgb 'black'
  set label 5 second at graph 0.5,1 offset 0,0.6 center font small textcolor rgb 'black'
  plot $ends every ::(p - 1) * ends::p * ends - 1 using "place":(0.5 * (floor_ + column("tflops"))):(column("place") - half):(column("place") + half):(floor_):"tflops":xticlabels(stringcolumn("label")) \
      with boxxyerror linecolor rgb simulated, \
    $ends every ::(p - 1) * ends::p * ends - 1 using "place":(column("tflops") + above):(sprintf('%.1f', column("tflops"))) with labels font small textcolor rgb grey, \
    $steps every ::(p - 1) * steps::p * steps - 1 using "place":(0.5 * (column("top") + column("bottom"))):(column("place") - half):(column("place") + half):"bottom":"top":(color(column("top"), column("bottom"))):xticlabels(stringcolumn("cause")) \
      with boxxyerror linecolor rgb variable, \
    $steps every ::(p - 1) * steps::p * steps - 1 using "place":((column("top") > column("bottom") ? column("top") : column("bottom")) + above):"label" with labels font small textcolor rgb grey
  unset label 1
  unset label 2
  unset label 4
  unset label 6
}
unset multiplot
