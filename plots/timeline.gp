# One row a stream, a box a kernel or collective; grey: a collective that waits for its last member. Colours: Okabe and Ito.
grey = '#555555'
set title 'One step, stream by stream' font ',18' offset 0,1
set label 1 word($heading[2], 1) at graph 0.5,1.03 center textcolor rgb grey
set tmargin 5
set bmargin 7.5
set lmargin 20
set rmargin 12
set border 1 linecolor rgb grey
set xtics nomirror textcolor rgb grey
set ytics nomirror scale 0 textcolor rgb grey
set grid xtics linetype -1 linecolor '#dddddd' linewidth 0.5
set xlabel 'ms since the step began'
stats $lanes using "lane" name 'lane' nooutput
stats $spans using "start_ms" name 'start' nooutput
stats $spans using "end_ms" name 'end' nooutput
set yrange [lane_max + 0.6:0.4]
set xrange [start_min:end_max]
set style fill solid 1 noborder
set key horizontal center bottom at screen 0.5,0.02 maxrows 2 width -2 samplen 1.5
half = 0.35
is(kind) = column("kind") == kind ? column("lane") : NaN
array names[5] = ['forward', 'recompute', 'backward', 'optimizer and other', 'collective']
array colors[5] = [0x0072B2, 0xF0E442, 0x009E73, 0xCC79A7, 0xD55E00]
plot for [k = 1:5] $spans using "start_ms":(is(k)):"start_ms":"end_ms":(column("lane") - half):(column("lane") + half) \
    with boxxyerror linecolor rgb colors[k] title names[k], \
  $waits using "start_ms":"lane":"start_ms":"end_ms":(column("lane") - half):(column("lane") + half) \
    with boxxyerror linecolor rgb '#bbbbbb' title 'waiting for the last member', \
  $lanes using (start_min):"lane":yticlabels(stringcolumn("label")) with points pointtype -1 notitle, \
  $lanes using (end_max):"lane":(stringcolumn("busy")) with labels left offset 1 textcolor rgb grey notitle
