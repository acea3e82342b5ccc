# One horizontal bar a point.
grey = '#555555'
bars = |$bars| - 1
# What tells bars apart beside model, strategy, batch and GPUs stands on a second line.
varied(b) = word($bars[b + 1], 3) eq '-' ? '' : word($bars[b + 1], 3)
label(b) = word($bars[b + 1], 2).(varied(b) eq '' ? '' : "\n".varied(b))
longest = 20
lines = 0
do for [b = 1 : bars] {
  longest = strlen(word($bars[b + 1], 2)) > longest ? strlen(word($bars[b + 1], 2)) : longest
  longest = strlen(varied(b)) > longest ? strlen(varied(b)) : longest
  lines = lines + (varied(b) eq '' ? 1.3 : 2.3)
}

height = int(800 > 220 + 18 * lines ? 800 : 220 + 18 * lines) # the labels of many bars do not fit in the usual one
eval terminal(height)

set title 'Throughput of a GPU' font ',18' offset 0,1
set label 1 word($heading[2], 1) at graph 0.5,graph 1 offset 0,0.9 center textcolor rgb grey
sampled = int(word($heading[2], 3))
set label 2 'MFU: of the dense peak of the precision.'. \
  (sampled ? ' Lines: 90 % of the samples, and thin with what the model leaves out.' : '') \
  at screen 0.02,20.0 / height textcolor rgb grey font ',11'
set tmargin 5
set bmargin 6
set lmargin 0.78 * longest + 2 # the margin counts in a larger font than the labels'
set rmargin 4
set border 1 linecolor rgb grey
set xtics nomirror textcolor rgb grey
set grid xtics linetype -1 linecolor '#dddddd' linewidth 0.5
set xlabel word($heading[2], 2).' per GPU'
set xrange [0 : *]
set offsets 0, graph 0.25, 0, 0
set yrange [bars + 0.6 : 0.4]
set ytics scale 0 textcolor 'black' font ',11' ()
set for [b = 1 : bars] ytics add (label(b) b)
set style fill solid 1 noborder
unset key

plot $bars using (0):"place":(0):"speed":(column("place") - 0.35):(column("place") + 0.35) with boxxyerror linecolor rgb '#56B4E9', \
  for [i = 1 : sampled > 0] $bars using "speed":"place":"lowest":"highest" with xerrorbars pointtype -1 linewidth 1 linecolor rgb 'black', \
  for [i = 1 : sampled > 0] $bars using "speed":"place":"low":"high" with xerrorbars pointtype -1 linewidth 3 linecolor rgb 'black', \
  $bars using "beyond":"place":"note" with labels left offset 1,0 font ',11'
