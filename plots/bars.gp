# Labels of horizontal bars, a point each: model, strategy, batch and GPUs, then what else differs, on further lines. Included
# by figures with the series bars (place, label, varied ...); `more` is what they need below, beyond the usual, and `least` the height of
# their legend, in pixels.
bars = |$bars| - 1
room = plain ? 30 : 64 # characters of a line
varied(b) = word($bars[b + 1], 3) eq '-' ? '' : word($bars[b + 1], 3)
label(b) = wrap(word($bars[b + 1], 2), room).(varied(b) eq '' ? '' : "\n".wrap(varied(b), room))
taken(text) = ceil(strlen(text) / (1.0 * room))
longest = plain ? 8 : 20
lines = 0
do for [b = 1 : bars] {
  longest = strlen(word($bars[b + 1], 2)) > longest ? strlen(word($bars[b + 1], 2)) : longest
  longest = strlen(varied(b)) > longest ? strlen(varied(b)) : longest
  lines = lines + 0.3 + taken(word($bars[b + 1], 2)) + taken(varied(b))
}
longest = longest > room ? room : longest
wide = 70.0 * bars < 580 ? 70.0 * bars : 580 # few bars are no towers, many have room for their labels
height = canvas(220 + more + (18 * lines > wide ? 18 * lines : wide > least ? wide : least))
eval terminal(height)

set label 1 word($heading[2], 1) at graph 0.5,graph 1 offset 0,0.9 center textcolor rgb grey
set tmargin 5
left = plain ? longest + 2 : 0.78 * longest + 2 # the margin counts in a larger font than the labels'
set lmargin left
set border 1 linecolor rgb grey
set xtics nomirror textcolor rgb grey
set grid xtics linetype -1 linecolor rgb faint linewidth 0.5
set xrange [0 : *]
set yrange [bars + 0.6 : 0.4]
set ytics scale 0 textcolor 'black' font ',11' ()
set for [b = 1 : bars] ytics add (label(b) b)
set style fill solid 1 noborder
if (plain) { set key at screen 0.02,(140.0 + 1.0 * more) / height left top maxrows 3 reverse Left samplen 1 } else { set key at graph 1.03,graph 1 left top reverse Left spacing 1.4 samplen 1 }
