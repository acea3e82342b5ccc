# Left: predicted against measured, both logarithmic, with the diagonal and +-10 %. Right: the error against the number of GPUs. One
# colour and shape a source (of many only whether a fit rests on a row), rows that a fit rests on apart from its others. Bars: 90 % intervals, where `validate --samples` made them.
#include "style.gp"
sources = |$sources| - 1
many = int(word($sources[2], 3))
if (many) { do for [s = 1 : sources] { set linetype s linecolor rgb (int(word($sources[s + 1], 2)) ? unseen : fitted) pointtype 7 } }
edge = 100 # %: what is further off is drawn there, so that it does not hide the others
held(v) = v > edge ? edge : v < -edge ? -edge : v
size = many ? 0.5 : 0.9
of(place, name) = column("place") == place ? column(name) : NaN

set border 3 linecolor rgb grey
set tics nomirror textcolor rgb grey
set grid linetype -1 linecolor rgb faint linewidth 0.5
set multiplot layout 1,2 title 'Training runs, measured and simulated' font ',18'
set label 1 word($heading[2], 1) at screen 0.5,0.915 center textcolor rgb grey
set tmargin 5
rows = sources < 11 ? sources : 11
set bmargin 4.6 + 1.13 * rows
set lmargin 11
set rmargin 3

# Axes that fit what there is, be it a few runs that are alike: $runs has 3 measured, 4 predicted, 5 error, 6 and 7 low and high, 8 and 9 of the error.
stats $runs using "gpus" name 'gpus' nooutput # before there is a range, which it would obey
least = 1e300
most = 0
off = 0
do for [r = 2 : |$runs|] {
  do for [k in "3 4 6 7"] {
    if (word($runs[r], int(k)) ne 'NaN') {
      value = real(word($runs[r], int(k)))
      least = value < least ? value : least
      most = value > most ? value : most
    }
  }
  do for [k in "5 8 9"] { if (word($runs[r], int(k)) ne 'NaN') { value = abs(real(word($runs[r], int(k)))); off = value > off ? value : off } }
}
if (off > edge) { off = edge; set label 2 sprintf('Errors above %d %% are drawn at %d %%.', edge, edge) at screen 0.98,0.02 right textcolor rgb grey font ',10' }
least = least / 1.25
most = most * 1.25
set xrange [least : most]
set yrange [least : most]
if (most / least < 30) { # decades are too far apart: 1, 2, 3, 5, 7 of each
  set xtics ()
  set ytics ()
  do for [decade = floor(log10(least)) : ceil(log10(most))] {
    do for [k in (most / least < 4 ? "1 1.2 1.5 2 2.5 3 4 5 6 7 8" : "1 2 5")] {
      tick = real(k) * 10.0 ** decade
      if (tick >= least && tick <= most) {
        set xtics add ((tick < 1000 ? sprintf('%g', tick) : sprintf('%gk', tick / 1000)) tick)
        set ytics add ((tick < 1000 ? sprintf('%g', tick) : sprintf('%gk', tick / 1000)) tick)
      }
    }
  }
}
set xlabel 'measured tokens/s per GPU  (dashed: 10 % off)'
set ylabel 'simulated tokens/s per GPU'
set logscale xy
set format '%.0s%c' # 1k, 100k, 1M
unset key
plot x with lines linecolor rgb grey notitle, \
  1.1 * x with lines dashtype 2 linecolor rgb '#aaaaaa' notitle, x / 1.1 with lines dashtype 2 linecolor rgb '#aaaaaa' notitle, \
  for [s = 1 : many ? 0 : sources] $runs using (of(s, "measured")):(of(s, "low")):(of(s, "low")):(of(s, "high")) with yerrorbars \
    linetype s pointtype -1 linewidth 0.4 notitle, \
  for [s = 1 : sources] $runs using (of(s, "measured")):(of(s, "predicted")) with points linetype s pointsize size notitle

unset label 1
unset logscale y
set xtics autofreq
set ytics autofreq
set yrange [-1.15 * (off > 0 ? off : 1) : 1.15 * (off > 0 ? off : 1)]
set format '%g'
set xlabel 'GPUs'
set ylabel 'simulated / measured - 1  (%)'
set logscale x 2
set xrange [gpus_min / 1.3 : gpus_max * 1.3]
set key at screen 0.5,(0.03 + 0.02 * rows) center top maxrows 11 reverse Left font ',10' samplen 1
plot 0 with lines linecolor rgb grey notitle, \
  for [s = 1 : many ? 0 : sources] $runs using "gpus":(held(of(s, "error"))):(held(of(s, "error_low"))):(held(of(s, "error_high"))) with yerrorbars \
    linetype s pointtype -1 linewidth 0.4 notitle, \
  for [s = 1 : sources] $runs using "gpus":(held(of(s, "error"))) with points linetype s pointsize size \
    title word($sources[s + 1], 1)
unset multiplot
