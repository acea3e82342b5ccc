# Colours of all figures, by what they stand for. Okabe and Ito's, which colour-blind people can distinguish; the same for the same thing in every
# figure. Included by all of them.
blue = '#0072B2'
orange = '#D55E00'
green = '#009E73'
pink = '#CC79A7'
sky = '#56B4E9'
amber = '#E69F00'
yellow = '#F0E442'
grey = '#555555'  # words, frames, axes
faint = '#dddddd' # grids
quiet = '#bbbbbb' # what is no work: waiting, context
simulated = blue
measured = orange # and published
unseen = blue     # rows that no fit rests on, and those that one does
fitted = amber
gain = green
loss = orange
# Curves, bars side by side, sources: in this order, each with a shape.
set linetype 1 linecolor rgb blue pointtype 7
set linetype 2 linecolor rgb orange pointtype 5
set linetype 3 linecolor rgb green pointtype 9
set linetype 4 linecolor rgb pink pointtype 13
set linetype 5 linecolor rgb sky pointtype 11
set linetype 6 linecolor rgb amber pointtype 15
set linetype 7 linecolor rgb grey pointtype 7
set linetype 8 linecolor rgb blue pointtype 4 dashtype 2
set linetype 9 linecolor rgb orange pointtype 6 dashtype 2
set linetype 10 linecolor rgb green pointtype 8 dashtype 2
set linetype 11 linecolor rgb pink pointtype 12 dashtype 2
set linetype 12 linecolor rgb sky pointtype 10 dashtype 2
set linetype cycle 12
