# Panels in as many columns as leave the fewest places empty. Included by figures that have set `panels`.
columns = panels < 4 ? panels : panels == 4 ? 2 : 3
if (panels > 4) { do for [n = 3 : (panels > 9 ? 6 : 4)] { columns = (-panels % n + n) % n <= (-panels % columns + columns) % columns ? n : columns } }
lines = (panels + columns - 1) / columns
