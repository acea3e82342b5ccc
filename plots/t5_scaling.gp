# Filled points on lines: simulated. Hollow points: published. One colour a curve (Okabe and Ito: colour-blind people can distinguish them).
#include "style.gp"
set linetype cycle 4
hollow(curve) = 6 - 2 * (curve == 2) + 2 * (curve == 3) + 6 * (curve == 4)

set title 'TFLOPS per GPU as the cluster grows' font ',18' offset 0,1
set label 1 word($heading[2], 1) at graph 0.5,1.03 center textcolor rgb grey
set label 2 'Legend: change from '.word($curves[2], 3).'. Published: '.word($heading[2], 2).'.' \
  at screen 0.02,0.055 textcolor rgb grey font ',11'
set label 3 'The text of the paper says a loss of 7 % from 8 to 512 GPUs; its figure shows 5.8 % at batch 8 and 3.3 % at batch 16.' \
  at screen 0.02,0.025 textcolor rgb grey font ',11'
set tmargin 5
set bmargin 8.5
set lmargin 11
set rmargin 4
set border 3 linecolor rgb grey
set tics nomirror textcolor rgb grey
set grid ytics linetype -1 linecolor rgb faint linewidth 0.5
set xlabel 'GPUs'
set ylabel 'TFLOPS per GPU  (axis does not start at 0)'
set logscale x 2
set xrange [*:*] noextend
stats $points using "gpus" name 'gpus' nooutput
set xrange [gpus_min / 1.15 : gpus_max * 1.15]
set yrange [*:*]
entries = 2 * (|$curves| - 1)
set offsets 0, 0, graph 0.05, graph (entries < 5 ? 0.3 : 0.08 * entries) # for the legend
set key bottom left reverse Left spacing 1.5 samplen 3

of(curve, name) = column("curve") == curve ? column(name) : NaN
readings = words($heading[2]) > 2 && word($heading[2], 3) > 1
if (readings) set label 5 'Band: '.word($heading[2], 3).' readings of the paper (parameters and Adam state in FP32 or BF16; NCCL with or without LL128; what further channels cost; line: the first of each).' \
  at screen 0.02,0.085 textcolor rgb grey font ',11'
# Where `run --samples` has been: 90 % of the samples, and their median as a thin line.
sampled = |$bands| > 1
if (sampled) set label 4 'Bands: 90 % of the samples (errors of numbers and noise alone); thin lines: median.' \
  at screen 0.02,0.115 textcolor rgb grey font ',11'
plot for [c = 1 : readings * (|$curves| - 1)] $points using "gpus":(of(c, "reading_low")):(of(c, "reading_high")) with filledcurves \
    linetype c fillstyle transparent solid 0.25 noborder notitle, \
  for [c = 1 : sampled * (|$curves| - 1)] $bands using "gpus":(of(c, "low")):(of(c, "high")) with filledcurves \
    linetype c fillstyle transparent solid 0.2 noborder notitle, \
  for [c = 1 : sampled * (|$curves| - 1)] $bands using "gpus":(of(c, "median")) with lines linetype c linewidth 0.7 notitle, \
  for [c = 1 : |$curves| - 1] $points using "gpus":(of(c, "simulated")) with linespoints \
    linetype c linewidth 2 pointsize 1.3 title word($curves[c + 1], 1), \
  for [c = 1 : |$curves| - 1] $points using "gpus":(of(c, "published")) with points \
    linecolor c pointtype hollow(c) pointsize 2.4 linewidth 2 title word($curves[c + 1], 2)
