# Colours of all figures, by what they stand for. Okabe and Ito's, which colour-blind people tell apart.
blue = '#0072B2'
orange = '#D55E00'
green = '#009E73'
pink = '#CC79A7'
sky = '#56B4E9'
amber = '#E69F00'
yellow = '#F0E442'
grey = '#555555'
faint = '#dddddd' # grids
quiet = '#bbbbbb' # what is no work: waiting, rest
