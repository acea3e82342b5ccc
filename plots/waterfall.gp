# Bars from the small cluster down to the large one: red takes throughput away, green gives it back. The axis does not start at 0.
grey = '#555555'
set title 'Why throughput falls as the cluster grows' font ',18' offset 0,1
set label 1 word($heading[2], 1) at graph 0.5,1.03 center textcolor rgb grey
set tmargin 5
set bmargin 4
set lmargin 11
set rmargin 4
set border 3 linecolor rgb grey
set tics nomirror textcolor rgb grey
set grid ytics linetype -1 linecolor '#dddddd' linewidth 0.5
set ylabel 'TFLOPS per GPU  (axis does not start at 0)'
unset key
stats $steps using "top" name 'top' nooutput
stats $steps using "bottom" name 'bottom' nooutput
stats $ends using "tflops" name 'ends' nooutput
stats $ends using "place" name 'place' nooutput
ends_place = place_max
high = ends_max > top_max ? ends_max : top_max
low = ends_min < bottom_min ? ends_min : bottom_min
margin = 0.25 * (high - low) + 1e-3 * high
floor_ = low - margin
set yrange [floor_:high + margin]
set xrange [-0.6:ends_place + 0.6]
set style fill solid 0.9 noborder
half = 0.35
color(a, b) = b <= a ? 0xD55E00 : 0x009E73
plot $ends using "place":(0.5 * (floor_ + column("tflops"))):(column("place") - half):(column("place") + half):(floor_):"tflops":xticlabels(stringcolumn("label")) \
    with boxxyerror linecolor rgb '#0072B2', \
  $ends using "place":(column("tflops") + 0.04 * (high - floor_)):(sprintf('%.1f', column("tflops"))) with labels textcolor rgb grey, \
  $steps using "place":(0.5 * (column("top") + column("bottom"))):(column("place") - half):(column("place") + half):"bottom":"top":(color(column("top"), column("bottom"))):xticlabels(stringcolumn("cause")) \
    with boxxyerror linecolor rgb variable, \
  $steps using "place":((column("top") > column("bottom") ? column("top") : column("bottom")) + 0.04 * (high - floor_)):"label" with labels textcolor rgb grey
