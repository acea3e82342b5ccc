# One row a stream, a box a kernel or collective; grey: a collective that waits for its last member, the host that is blocked. Colours: Okabe and Ito.
grey = '#555555'
lanes = |$lanes| - 1
height = canvas(260 + 70 * (lanes < 3 ? 3 : lanes))
eval terminal(height)
from_ms = real(word($heading[2], 2))
to_ms = real(word($heading[2], 3))

set title 'One step, stream by stream' font ',18' offset 0,1
set label 1 word($heading[2], 1) at graph 0.5,graph 1 offset 0,0.9 center textcolor rgb grey
set tmargin 5
set bmargin 7.5
set lmargin 20
set rmargin 13
set border 1 linecolor rgb grey
set xtics nomirror textcolor rgb grey
set ytics nomirror scale 0 textcolor rgb grey
set grid xtics linetype -1 linecolor '#dddddd' linewidth 0.5
set xlabel 'ms since the step began'
set yrange [lanes + 0.6:0.4]
set xrange [from_ms:to_ms]
set style fill solid 1 noborder
set key horizontal center bottom at screen 0.5,16.0 / height maxrows 2 reverse Left samplen 1.5
half = 0.35
is(kind) = column("kind") == kind ? column("lane") : NaN
array names = ['forward', 'recompute', 'backward', 'optimizer and other', 'collective', 'waiting or blocked']
array colors = [0x0072B2, 0xF0E442, 0x009E73, 0xCC79A7, 0xD55E00, 0xBBBBBB]
seen = ' ' # the legend has what is drawn
do for [s = 2:|$spans|] { seen = strstrt(seen, word($spans[s], 4)) > 0 ? seen : seen.word($spans[s], 4).' ' }
# gnuplot warns of a series without points.
named = |$names| > 1 ? '$names using "middle_ms":"lane":"name" with labels font ",8" textcolor rgb "black" notitle,' : ''
boxes = ''
do for [k in seen] {
  boxes = boxes.sprintf('$spans using "start_ms":(is(%s)):"start_ms":"end_ms":(column("lane") - half):(column("lane") + half) ', k) \
    .sprintf('with boxxyerror linecolor rgb colors[%s] title names[%s], ', k, k)
}
eval 'plot '.boxes.named \
  .'$lanes using (from_ms):"lane":yticlabels(stringcolumn("label")) with points pointtype -1 notitle, ' \
  .'$lanes using (to_ms):"lane":(sprintf("%.1f %% busy", 1e5 * column("busy_s") / (to_ms - from_ms))) with labels ' \
  .'left offset 1 textcolor rgb grey notitle'
