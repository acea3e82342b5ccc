# Bars: simulated. Diamonds: published. One shade a strategy, from sharded (dark) to replicated (light), of one blue: they differ without
# colour, and the order of the bars is that of the legend.
#include "style.gp"
set linetype 1 linecolor '#08306b'
set linetype 2 linecolor '#2171b5'
set linetype 3 linecolor '#6baed6'
set linetype 4 linecolor '#bdd7e7'
strategies = |$strategies| - 1
models = |$models| - 1
place(model, strategy) = model + (strategy - (strategies + 1) / 2.0) * 0.8 / strategies

set title 'TFLOPS per GPU by model size and strategy' font ',18' offset 0,1
set label 1 word($heading[2], 1) at graph 0.5,1.03 center textcolor rgb grey
set label 2 'Published: '.word($heading[2], 2).'. OOM: out of memory. Numbers: published above simulated.' at screen 0.02,0.055 textcolor rgb grey font ',11'
set label 3 'The paper does not state the GPU count, batch and sequence length of this figure: those of the simulation are assumed.' \
  at screen 0.02,0.025 textcolor rgb grey font ',11'
set tmargin 5
set bmargin 6
set lmargin 11
set rmargin 4
set border 3 linecolor rgb grey
set tics nomirror textcolor rgb grey
set grid ytics linetype -1 linecolor rgb faint linewidth 0.5
set ylabel 'TFLOPS per GPU'
set xrange [0.5 : models + 0.5]
set yrange [0 : *]
set offsets 0, 0, graph 0.1, 0
set xtics scale 0 textcolor 'black' ()
set for [m = 1 : models] xtics add (word($models[m + 1], 1) m)
set style fill solid 1 noborder
set boxwidth 0.7 / strategies
set key top left reverse Left spacing 1.5 samplen 2

x = 'place(column("model"), column("strategy"))'
only(s, name) = column("strategy") == s ? column(name) : NaN
plot for [s = 1 : strategies] $bars using (@x):(only(s, "simulated")) with boxes linetype s title word($strategies[s + 1], 1), \
  $bars using (@x):"published" with points pointtype 12 pointsize 2.2 linewidth 2 linecolor rgb measured title 'published', \
  $bars using (@x):"top":"label" with labels offset 0,1 font ',11' notitle, \
  $bars using (@x):"top":"published_label" with labels offset 0,2 font ',11' textcolor rgb measured notitle
