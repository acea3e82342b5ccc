# Filled points on lines: simulated. Hollow points: published. One colour a curve (Okabe and Ito: told apart by colour-blind people).
set linetype 1 linecolor '#0072B2' pointtype 7
set linetype 2 linecolor '#D55E00' pointtype 5
set linetype 3 linecolor '#009E73' pointtype 9
set linetype 4 linecolor '#CC79A7' pointtype 13
set linetype 5 linecolor '#56B4E9' pointtype 11
set linetype 6 linecolor '#E69F00' pointtype 15
set linetype 7 linecolor '#555555' pointtype 7
set linetype cycle 7
grey = '#555555'

# A line of the legend for every curve; four have room in the usual height.
height = 800 + 27 * (|$curves| - 1 > 4 ? |$curves| - 5 : 0)
eval terminal(height)

set title 'TFLOPS per GPU as the cluster grows' font ',18' offset 0,1
set label 1 word($heading[2], 1) at graph 0.5,graph 1 offset 0,0.9 center textcolor rgb grey
sampled = |$bands| > 1
published = strlen(word($heading[2], 2)) > 0
set label 2 'Legend: change over the GPUs of the curve. Points out of memory are left out.'. \
  (sampled ? ' Bands: 90 % of the samples, and paler with what the model leaves out.' : '') at screen 0.02,36.0 / height textcolor rgb grey font ',11'
if (published) set label 3 'Hollow: published, '.word($heading[2], 2) at screen 0.02,16.0 / height textcolor rgb grey font ',11'
set tmargin 5
set lmargin 11
set rmargin 4
set bmargin 6.5 + 1.4 * (|$curves| - 1)
set border 3 linecolor rgb grey
set tics nomirror textcolor rgb grey
set grid ytics linetype -1 linecolor '#dddddd' linewidth 0.5
set xlabel 'GPUs'
set ylabel 'TFLOPS per GPU'
set logscale x 2
stats $points using "gpus" name 'gpus' nooutput
set xrange [gpus_min / 1.15 : gpus_max * 1.15]
set yrange [0:*]
set key at screen 0.05,60.0 / height left bottom horizontal reverse Left spacing 1.3 samplen 2 maxcols 1

of(curve, name) = column("curve") == curve ? column(name) : NaN
plot for [c = 1 : sampled * (|$curves| - 1)] $bands using "gpus":(of(c, "lowest")):(of(c, "highest")) with filledcurves \
    linetype c fillstyle transparent solid 0.07 noborder notitle, \
  for [c = 1 : sampled * (|$curves| - 1)] $bands using "gpus":(of(c, "low")):(of(c, "high")) with filledcurves \
    linetype c fillstyle transparent solid 0.2 noborder notitle, \
  for [c = 1 : |$curves| - 1] $points using "gpus":(of(c, "simulated")) with linespoints \
    linetype c linewidth 2 pointsize 1.3 title word($curves[c + 1], 1), \
  for [c = 1 : |$curves| - 1] $points using "gpus":(published ? of(c, "published") : NaN) with points \
    linecolor c pointtype 6 pointsize 2.4 linewidth 2 notitle
