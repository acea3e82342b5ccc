# A tornado: one number at a time, one standard error lower and higher; the line is the prediction with all numbers as they are.
#include "style.gp"
parts = |$parts| - 1
longest = 20
do for [p = 2 : |$parts|] { longest = strlen(word($parts[p], 2)) > longest ? strlen(word($parts[p], 2)) : longest }
height = canvas(250 + 34 * (parts < 4 ? 4 : parts))
eval terminal(height)
middle = real(word($heading[2], 2))
stats $parts using "low" name 'low' nooutput
stats $parts using "high" name 'high' nooutput
least = low_min < high_min ? low_min : high_min
most = low_max > high_max ? low_max : high_max
room = 0.16 * (most - least) # for the numbers at the ends

set title 'What the prediction depends on' font ',18' offset 0,1
set label 1 word($heading[2], 1) at graph 0.5,graph 1 offset 0,0.9 center textcolor rgb grey
set label 2 wrap(word($heading[2], 3), plain ? 76 : 150) at screen 0.02,(plain ? 60.0 : 40.0) / height textcolor rgb grey font ',11'
set tmargin 5
set bmargin plain ? 8 : 8.5
set lmargin plain ? longest + 2 : 0.8 * longest + 2
set rmargin 4
set border 1 linecolor rgb grey
set xtics nomirror textcolor rgb grey
set grid xtics linetype -1 linecolor rgb faint linewidth 0.5
set xlabel 'TFLOPS per GPU'
set xrange [least - room : most + room]
set yrange [parts + 0.6 : 0.4]
set ytics scale 0 textcolor 'black' font ',11' ()
set for [p = 1 : parts] ytics add (word($parts[p + 1], 5) p)
set arrow 1 from middle,0.4 to middle,parts + 0.6 nohead linecolor rgb 'black' linewidth 1 front
set style fill solid 1 noborder
set key at screen 0.98,(plain ? 120.0 : 80.0) / height right bottom horizontal reverse Left samplen 1
# what the further of the two is on each side; gnuplot 5.4 falls over labels that are all NaN
rightmost(x) = column("low") > column("high") ? column("low") : column("high")
leftmost(x) = column("low") < column("high") ? column("low") : column("high")
said(name, what) = stringcolumn("label").', '.what.sprintf(': %.2f', column(name))
plot $parts using "low":"place":(middle):"low":(column("place") - 0.33):(column("place") + 0.33) with boxxyerror linecolor rgb orange \
    title 'one standard error lower', \
  $parts using "high":"place":(middle):"high":(column("place") - 0.33):(column("place") + 0.33) with boxxyerror linecolor rgb blue \
    title 'one standard error higher', \
  $parts using (rightmost(0)):"place":(rightmost(0) > middle ? sprintf('%.1f', rightmost(0)) : '') with labels left offset 0.6,0 font ',10' notitle, \
  $parts using (leftmost(0)):"place":(leftmost(0) < middle ? sprintf('%.1f', leftmost(0)) : '') with labels right offset -0.6,0 font ',10' notitle, \
  for [i = 1 : hover ? 2 : 0] $parts using (0.5 * (middle + column(word("low high", i)))):"place":(said(word("low high", i), word("lower higher", i))) \
    with labels hypertext point pointtype 7 pointsize 4 linecolor rgb "#ff000000" notitle
