# One row a stream, a box a kernel or collective (of a pipeline a row a stage, a box a micro-batch's pass); grey: a collective that waits for its last member, the host that is blocked. Colours: Okabe and Ito.
#include "style.gp"
from_ms = real(word($heading[2], 2))
to_ms = real(word($heading[2], 3))
stages = |$cells| > 1 ? |$stages| - 1 : 0
lanes = stages > 0 ? stages : |$lanes| - 1
height = canvas(stages > 0 ? 230 + 44 * (lanes < 3 ? 3 : lanes) : 260 + 70 * (lanes < 3 ? 3 : lanes))
eval terminal(height)

set title (stages > 0 ? 'One step, stage by stage' : 'One step, stream by stream') font ',18' offset 0,1
set label 1 word($heading[2], 1) at graph 0.5,graph 1 offset 0,0.9 center textcolor rgb grey
set tmargin 5
set bmargin 7.5
set lmargin 20
set rmargin 13
set border 1 linecolor rgb grey
set xtics nomirror textcolor rgb grey
set ytics nomirror scale 0 textcolor rgb grey
set grid xtics linetype -1 linecolor rgb faint linewidth 0.5
set xlabel 'ms since the step began'
set yrange [lanes + 0.6:0.4]
set xrange [from_ms:to_ms]
set style fill solid 1 noborder
set key horizontal center bottom at screen 0.5,16.0 / height maxrows 2 reverse Left samplen 1.5
if (stages > 0) {
# As in the papers on pipelines: forward blue, backward green, a second chunk lighter; the number of the micro-batch in its box.
half = 0.5
array names = ['forward', 'forward, even chunks', 'backward', 'backward, even chunks', 'backward, weights', 'optimizer and others']
array colors = [0x0072B2, 0x99C7E0, 0x009E73, 0x99D8C7, 0xE69F00, 0xBBBBBB]
seen = ' '
do for [s = 2:|$cells|] { seen = strstrt(seen, word($cells[s], 4)) > 0 ? seen : seen.word($cells[s], 4).' ' }
if (strstrt(seen, '5') > 0) { names[3] = 'backward, inputs' }
if (strstrt(seen, '2') > 0) { names[1] = 'forward, odd chunks'; names[3] = 'backward, odd chunks' }
is(kind) = column("kind") == kind ? column("lane") : NaN
dark(kind) = kind == 1 || kind == 3 ? 0xFFFFFF : 0x000000
set ytics scale 0
unset grid
boxes = ''
do for [k = 1:6] {
  if (strstrt(seen, sprintf('%d', k)) > 0) {
    boxes = boxes.sprintf('$cells using "start_ms":(is(%d)):"start_ms":"end_ms":(column("lane") - half):(column("lane") + half) ', k) \
      .sprintf('with boxxyerror fillcolor rgb colors[%d] fillstyle solid 1 border linecolor rgb "white" title names[%d], ', k, k)
  }
}
eval 'plot '.boxes \
  .'$cells using "middle_ms":"lane":"number":(dark(column("kind"))) with labels font ",9" textcolor rgb variable notitle, ' \
  .'$stages using (from_ms):"lane":yticlabels(stringcolumn("label")) with points pointtype -1 notitle, ' \
  .'$stages using (to_ms):"lane":(sprintf("%.1f %% busy", 1e5 * column("busy_s") / (to_ms - from_ms))) with labels ' \
  .'left offset 1 textcolor rgb grey notitle'
} else {
half = 0.35
is(kind) = column("kind") == kind ? column("lane") : NaN
array names = ['forward', 'recompute', 'backward', 'optimizer and other', 'collective', 'waiting or blocked']
array colors = [0x0072B2, 0xF0E442, 0x009E73, 0xCC79A7, 0xD55E00, 0xBBBBBB]
seen = ' ' # the legend has what is drawn
do for [s = 2:|$spans|] { seen = strstrt(seen, word($spans[s], 4)) > 0 ? seen : seen.word($spans[s], 4).' ' }
if (strstrt(seen, '6') > 0) { seen = seen[1:strstrt(seen, '6') - 1].seen[strstrt(seen, '6') + 1:*].' 6 ' } # over what waits
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
}
