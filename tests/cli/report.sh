#!/usr/bin/env bash
# `flopcast report`: a page that stands alone; a name that would like to be a script stays a text; the command on it repeats the run.
set -euo pipefail
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"

# valid FILE: HTML, where there is a tidy to ask; it has nothing that a browser would fetch. A link that a reader may follow is no request.
valid() {
    if command -v tidy >/dev/null; then
        tidy -e -q "$1" >complaints 2>&1 || fail "$1 is no HTML: $(head -n 5 complaints)"
        [[ ! -s complaints ]] || fail "tidy says of $1: $(head -n 5 complaints)"
    fi
    if grep -noE '(src|srcset|action|data|poster) *=|<(link|iframe|object|embed|base|form|image)[ >]|@import|url\([^#]|[^k]:?href="[^#]' <(sed 's/<a rel="noreferrer" href="https\{0,1\}:[^"]*">//g' "$1"); then
        fail "$1 fetches something"
    fi
    says "$1" "default-src 'none'" '<html lang="en">' 'name="viewport"' "@media print"
}

scenario plain.yaml 'description: Two layers on some GPUs' 'sweep: [{cluster.gpus: [8, 16, 32]}]'
expect 0 "$FLOPCAST" run plain.yaml --db a.db --quiet --samples 2 --set "train.micro_batch=[2, 4]" --set host.kernel_issue=7us \
    --set "cluster.slow_gpus=node0.gpu1=80 %, node0.gpu2=90 %"
expect 0 "$FLOPCAST" waterfall plain.yaml --db a.db
expect 0 "$FLOPCAST" report --db a.db
[[ $(cat out) == "wrote report.html" ]] || fail "what it is called: $(cat out)"
valid report.html
says report.html "<h2>plain</h2>" "Two layers on some GPUs" "Run 1 of a.db" ": 6 points." "kernels alone take" "From 8 to 32 GPUs" \
    "<td>stragglers</td>" "<th scope=\"col\" class=\"n\">activations</th>" "the median, and the spread of 90 %" "--set host.kernel_issue:1:1" \
    "plain.yaml:3:" "<td>run.seed</td>" "<td>default</td>" "digest of all events"
# How sure it is, in the words of `flopcast run`.
says report.html "<h3>How sure it is</h3>" "9 of 10 measured speeds of such jobs lay " " makers, each predicted without its own" "Not traced:"
for point in $(ask "SELECT digest FROM point"); do
    says report.html ">$point</td>"
done
# The answer first; each speed with its interval, as the database has both, and whether it fits.
says report.html '<p class="answer">' "% from 8 to 32 GPUs, " "TFLOPS/GPU (90 %)" "fits, "
ask "SELECT tflops_per_gpu, tflops_per_gpu_low, tflops_per_gpu_high FROM point ORDER BY position" >speeds
python3 - <<'EOF' || fail "intervals on the page"
import re
cells = [[float(n.replace(",", "")) for n in cell] for cell in re.findall(r'<td class="n">([\d.,]+) \(([\d.,]+)-([\d.,]+)\)</td>', open("report.html").read())]
for line in open("speeds"):
    want = [float(n) for n in line.split()]
    unit = (want[2] - want[1]) / 2 / 20
    assert any(all(abs(a - b) <= unit for a, b in zip(cell, want)) for cell in cells), (want, cells)
EOF
# What the command on the page gives is what it was taken from.
command=$(sed -n 's/^<pre>flopcast \(run .*\)<\/pre>$/\1/p' report.html | sed "s/&#39;/'/g; s/&quot;/\"/g")
[[ $command == *"--samples 2"* ]] || fail "to repeat it: $command"
eval "expect 0 \"\$FLOPCAST\" $command --db b.db --quiet"
[[ $(ask "SELECT position, digest FROM point ORDER BY 1" a.db) == "$(ask "SELECT position, digest FROM point ORDER BY 1" b.db)" ]] ||
    fail "another run: $command"
# The same page from the same database.
expect 0 "$FLOPCAST" report plain --db a.db --out again.html
cmp report.html again.html || fail "another page"

# A traced point is drawn on the page of the run that it is a point of: a part of its step, of a pipeline stage by stage.
expect 0 "$FLOPCAST" run plain.yaml --db t.db --quiet
expect 0 "$FLOPCAST" run plain.yaml --db t.db --quiet --set cluster.gpus=16 --trace t.json
scenario stages.yaml "parallelism: {pipeline: 2}"
sed -i 's/micro_batch: 2,/micro_batch: 2, grad_accum: 8,/; s/strategy: ddp/strategy: megatron/' stages.yaml
expect 0 "$FLOPCAST" run stages.yaml --db t.db --quiet --trace t.json
expect 0 "$FLOPCAST" report 1 stages --db t.db --out traced.html
valid traced.html
says traced.html "batch 2, 16 GPUs: " "about the first backward kernel, stream by stream" "stage by stage; a number is a micro-batch"
if grep -q "Not traced:" traced.html; then fail "a trace that is not found"; fi

# What the scenario depends on, and months of it, where they were asked.
expect 0 "$FLOPCAST" sensitivity plain.yaml --db t.db --set cluster.gpus=8
expect 0 "$FLOPCAST" goodput plain.yaml --db t.db --set goodput.gpu_mtbf=20h --days 3 --seeds 2
expect 0 "$FLOPCAST" report 1 --db t.db --out studies.html
valid studies.html
says studies.html "<h3>What it depends on</h3>" "<h3>Months of training</h3>" '<th scope="col" class="n">training, %</th>'
if grep -q "What 10 billion tokens" studies.html; then fail "tokens that were not given"; fi
expect 0 "$FLOPCAST" goodput plain.yaml --db t.db --set goodput.gpu_mtbf=20h --tokens 10B --days 3 --seeds 2 --price v100=2.5 --format csv
cp out paid.csv
expect 0 "$FLOPCAST" report 1 --db t.db --out studies.html
valid studies.html
says studies.html "What 10 billion tokens" '<th scope="col" class="n">cost, $</th>' "90 % of cost" "energy, MWh" '<td class="n">2.5</td>'
# What the database has is what the command said.
for column in training_days training_days_p95 cost_usd cost_usd_p05 energy_kwh spare_gpus; do
    said=$(python3 -c 'import csv, sys; print(next(csv.DictReader(open("paid.csv", newline="")))[sys.argv[1]])' "$column")
    [[ $(ask "SELECT abs($column - $said) <= 1e-9 * $said FROM goodput_point ORDER BY goodput_id DESC, position LIMIT 1" t.db) == 1 ]] || fail "$column is not $said"
done
if grep -q "What it depends on" traced.html; then fail "a section without what belongs there"; fi

# Names and descriptions are texts, whatever is in them; in pictures, too.
scenario hostile.yaml 'sweep: [{cluster.gpus: [8, 16]}]'
cat >first <<'YAML'
name: "</title></svg><script>alert(1)</script><img src=x onerror=alert(2)>\" onclick=\"'&amp; \x01 \xe9"
YAML
{
    cat first
    tail -n +2 hostile.yaml
} >hostile2.yaml && mv hostile2.yaml hostile.yaml
echo 'description: "</style><!-- <b>--> &lt;"' >>hostile.yaml
expect 0 "$FLOPCAST" run hostile.yaml --db c.db --quiet
expect 0 "$FLOPCAST" waterfall hostile.yaml --db c.db
expect 0 "$FLOPCAST" sensitivity hostile.yaml --db c.db --set cluster.gpus=8
expect 0 "$FLOPCAST" goodput hostile.yaml --db c.db --set goodput.gpu_mtbf=20h --days 3 --seeds 2
expect 0 "$FLOPCAST" report --db c.db --out c.html
if grep -qE '<script>alert|<img|<b>-|<!-- <b' c.html; then fail "a name is markup"; fi
[[ $(grep -c '<script>' c.html) == 1 ]] || fail "scripts: $(grep -c '<script>' c.html)"
says c.html '&lt;script&gt;alert(1)' 'onerror=alert(2)&gt;&quot; onclick=&quot;&#39;&amp;amp;' '&lt;/style&gt;&lt;!-- &lt;b&gt;--&gt; &amp;lt;'
if command -v tidy >/dev/null; then
    tidy -e -q c.html >complaints 2>&1 || fail "a hostile name: $(head -n 5 complaints)"
fi

# Several runs, by number and by name; what is out of memory; mistakes.
expect 0 "$FLOPCAST" run hostile.yaml --db a.db --quiet --set train.micro_batch=65536 --set name=big
expect 0 "$FLOPCAST" report plain 2 --db a.db --out two.html
valid two.html
says two.html 'href="#run1"' 'id="run2"' "does not fit: " "Not explained:"
[[ -z $(grep -o ' id="[^"]*"' two.html | sort | uniq -d) ]] || fail "ids that are there twice"
expect 2 "$FLOPCAST" report 1 plain --db a.db --out x.html
says err "run 1 is chosen twice"
expect 2 "$FLOPCAST" report 7 nosuch --db a.db --out x.html
says err "7" "there is no run of scenario 'nosuch'; there are: "
expect 1 "$FLOPCAST" report --db absent.db --out x.html
expect 1 "$FLOPCAST" report --db a.db --out nowhere/x.html
says err "nowhere/x.html: error: cannot write"
[[ ! -e x.html ]] || fail "a page in spite of a mistake"

# Without gnuplot: the rest, and a sentence.
mkdir nothing
PATH=$PWD/nothing expect 0 "$FLOPCAST" report 1 --db a.db --out bare.html
says err "bare.html: warning: the page has no pictures: gnuplot is not installed"
valid bare.html
says bare.html "The page has no pictures: gnuplot is not installed" "kernels alone take"
if grep -q '<svg' bare.html; then fail "a picture without gnuplot"; fi
if command -v gnuplot >/dev/null; then
    says traced.html 'aria-label="Figure timeline of plain' 'aria-label="Figure timeline of stages'
    expect 0 "$FLOPCAST" report stages --db t.db --out one.html # one point: not every part of a step has a bar
    [[ ! -s err ]] || fail "one point: $(<err)"
    says one.html 'aria-label="Figure speed of stages' 'aria-label="Figure breakdown of stages' 'aria-label="Figure memory of stages'
    says report.html 'aria-label="Figure memory_timeline of plain'
    says report.html 'id="run1-scaling-gnuplot_canvas"' "<title>kernels: " " TFLOPS per GPU, GPUs 16: " 'aria-label="Figure breakdown of plain'
    if grep -q 'onmouse\|gnuplot_plot_1<' report.html; then fail "what gnuplot writes for its own script is left"; fi
fi

# In a browser, where there is one: as wide as the window, on a desk and on a phone, and the tables sort.
if command -v chromium >/dev/null; then
    # shellcheck disable=SC2016 # the script's
    sed 's|</body>|<script>const first = document.querySelector("th.n button"), cells = () => [...first.closest("table").tBodies[0].rows].map(row => row.cells[first.parentNode.cellIndex].textContent).join(); first.click(); const up = cells(); first.click(); document.title = "wide " + (document.documentElement.scrollWidth <= innerWidth) + " up " + up + " down " + cells();</script>&|' \
        report.html >probe.html
    for width in 1280 390; do
        timeout 120 chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$PWD/profile" --window-size=$width,2000 \
            --screenshot="$PWD/report_$width.png" "file://$PWD/report.html" >log 2>&1 || fail "chromium: $(tail -n 3 log)"
        [[ $(head -c 8 report_$width.png | od -An -tx1 | tr -d ' \n') == 89504e470d0a1a0a ]] || fail "no screenshot at $width"
        timeout 120 chromium --headless --no-sandbox --disable-gpu --user-data-dir="$PWD/profile" --window-size=$width,2000 --dump-dom \
            "file://$PWD/probe.html" >dom 2>log || fail "chromium: $(tail -n 3 log)"
        says dom "<title>wide true up 2,2,2,4,4,4 down 4,4,4,2,2,2</title>"
    done
fi
