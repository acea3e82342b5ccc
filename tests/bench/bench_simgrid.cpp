// The work of bench_ring.c and of the solver of bench_engine.c in SimGrid: the same links, messages
// and flows, one simulator after the other. Of both a line says the time, the memory and the
// simulated result. When the results are further apart than 1e-6, the exit status is 1.
//
// bench_simgrid ring RANKS: bench_ring simulates the ring and prints what it simulated; SimGrid
// simulates that. bench_simgrid solver: the flows are set up here again, with the same draws; an
// equal end says that they are the same.
//
// The model is SimGrid's CM02 without its corrections for TCP: no factors, no weights by bandwidth,
// no traffic of acknowledgements. Links have no latency, so TCP's window limits nothing. That
// leaves plain max-min sharing, which net/net.h has. Both clocks are exact to a picosecond;
// SimGrid's default of a nanosecond is no faster here.
//
// What is fastest in SimGrid 3.32, by measurement of a ring of 512 ranks (523,264 messages):
// * A message is a s4u::Comm between two hosts. What waits for it starts in its completion, outside
// of any actor. An
//   actor for each connection, which waits for a semaphore and sends (contexts/factory:raw),
//   takes 1.8 times as long. A graph of dependent activities starts its comms in the same way but
//   would hold all of them from the beginning.
// * Latencies are timers of SimGrid's kernel. As latencies of links they take twice as long. Those
// between nodes could
//   not be stated in that way: a message pays them after its last byte, while the next one is
//   already on the link.
// * A star zone, since its routes take no more memory than links; the table of a full zone takes 13
// MB more.
// * Updates are lazy, as by default; with network/optim:Full the solver takes more than ten times
// as long.
//
// Nothing is traced or logged. What differs: a rate cap is a link with one flow, since a comm
// between hosts ignores Comm::set_rate, and flows are whole bytes. The ring's time has the building
// of its platform in it, as that of bench_ring has; the solver's has not, as in bench_engine. The
// memory has SimGrid's libraries in it, 32 MB.
#include <simgrid/kernel/Timer.hpp>
#include <simgrid/s4u.hpp>
#include <simgrid/version.h>
#include <xbt/log.h>

#include <sys/resource.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

extern "C" {
#include "base/rng.h"
}

namespace sg = simgrid::s4u;

static constexpr double TOLERANCE = 1e-6;

[[noreturn]] static void fail(const char *what)
{
    std::fprintf(stderr, "bench_simgrid: error: %s\n", what);
    std::exit(2);
}

static double now_s()
{
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

static double memory_MB()
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_maxrss) * 1.024e-3;
}

// What another program prints: its first line, then numbers.
class output {
    std::unique_ptr<FILE, int (*)(FILE *)> stream;

  public:
    explicit output(const std::string &command) : stream(popen(command.c_str(), "r"), pclose)
    {
        if (!stream)
            fail("no process");
    }
    std::string line()
    {
        std::string text;
        for (int c = std::getc(stream.get()); c != EOF && c != '\n'; c = std::getc(stream.get()))
            text += static_cast<char>(c);
        return text;
    }
    double number()
    {
        double value;
        if (std::fscanf(stream.get(), "%lf", &value) != 1)
            fail("a number of the plan is missing");
        return value;
    }
    int count() { return static_cast<int>(number()); }
};

// A host for each sender, whose route has its links, and one receiver for all, which has none.
class platform {
    sg::NetZone *zone = sg::create_star_zone("cluster");
    std::vector<sg::Link *> links;
    sg::Host *receiver = zone->create_host("receiver", 1e9)->seal();
    std::vector<sg::Host *> senders;

  public:
    platform() { zone->add_route(nullptr, receiver->get_netpoint(), nullptr, nullptr, {}, false); }
    void add_link(double capacity_Bps)
    {
        std::string name = "link" + std::to_string(links.size());
        links.push_back(zone->create_link(name, capacity_Bps)->set_latency(0)->seal());
    }
    void add_sender(const std::vector<int> &crossed)
    {
        std::vector<sg::LinkInRoute> route;
        for (int link : crossed)
            route.emplace_back(links[static_cast<size_t>(link)]);
        senders.push_back(
            zone->create_host("sender" + std::to_string(senders.size()), 1e9)->seal());
        zone->add_route(senders.back()->get_netpoint(), nullptr, nullptr, nullptr, route, false);
    }
    void seal() { zone->seal(); }
    void set_capacity(int link, double capacity_Bps)
    {
        links[static_cast<size_t>(link)]->set_bandwidth(capacity_Bps);
    }
    // Whoever listens to completions finds the sender's number as the data of the comm.
    sg::CommPtr send(size_t sender, double bytes)
    {
        sg::CommPtr comm = sg::Comm::sendto_init();
        comm->set_payload_size(static_cast<uint64_t>(bytes));
        comm->set_data(reinterpret_cast<void *>(sender));
        comm->set_source(senders[sender])->set_destination(receiver); // which starts it
        return comm;
    }
};

static size_t sender_of(const sg::Activity &comm)
{
    return reinterpret_cast<size_t>(comm.get_data<void>());
}

// A comm that has completed is still read after its callback, so it is kept until the next of its
// sender completes.
struct comm_slot {
    sg::CommPtr current, last;
};

// A connection of tests/fabric/chunks.h.
struct connection {
    size_t input, output;
    double wait_s, latency_s;
    std::vector<int> links;
    comm_slot comm;
    int sent = 0, arrived = 0;
    bool busy = false;
};

class ring {
    platform place;
    int messages, lag;
    double message_bytes, base_s;
    std::vector<double> capacity;
    std::vector<connection> connections;

    template <class callback> static void later(double seconds, callback then)
    {
        simgrid::kernel::timer::Timer::set(sg::Engine::get_clock() + seconds, then);
    }
    void start(size_t i)
    {
        connections[i].sent++;
        connections[i].comm.current = place.send(i, message_bytes);
    }
    void send_next(size_t i)
    {
        connection &c = connections[i];
        if (c.busy || c.sent == messages ||
            (c.sent >= lag && connections[c.input].arrived < c.sent + 1 - lag))
            return;
        c.busy = true;
        if (c.wait_s > 0 && c.sent % lag == 0)
            later(c.wait_s, [this, i] { start(i); });
        else
            start(i);
    }
    void arrive(size_t i)
    {
        connections[i].arrived++;
        send_next(connections[i].output);
    }

  public:
    explicit ring(output &plan)
    {
        messages = plan.count();
        message_bytes = plan.number();
        lag = plan.count();
        base_s = plan.number();
        capacity.resize(static_cast<size_t>(plan.count()));
        for (double &each : capacity)
            each = plan.number();
        connections.resize(static_cast<size_t>(plan.count()));
        for (connection &c : connections) {
            c.input = static_cast<size_t>(plan.count());
            c.wait_s = plan.number();
            c.latency_s = plan.number();
            c.links.resize(static_cast<size_t>(plan.count()));
            for (int &link : c.links) {
                link = plan.count();
                if (plan.number() != 1)
                    fail("a message has a weight, and SimGrid knows none");
            }
        }
        for (size_t i = 0; i < connections.size(); i++)
            connections[connections[i].input].output = i;
    }
    void build()
    {
        for (double each : capacity)
            place.add_link(each);
        for (const connection &c : connections)
            place.add_sender(c.links);
        place.seal();
    }
    void completed(size_t i)
    {
        connection &c = connections[i];
        c.comm.last = std::move(c.comm.current);
        c.busy = false;
        send_next(i);
        if (c.latency_s > 0)
            later(c.latency_s, [this, i] { arrive(i); });
        else
            arrive(i);
    }
    void begin()
    {
        for (size_t i = 0; i < connections.size(); i++)
            send_next(i);
    }
    double end_s() const
    {
        for (const connection &c : connections)
            if (c.arrived != messages)
                fail("messages that did not arrive");
        return base_s + sg::Engine::get_clock();
    }
};

// Flows that come and go: bench_solver of bench_engine.c, with its numbers.
class solver {
    static constexpr int NODES = 64, GPUS = 8, FLOWS = NODES + GPUS,
                         LINKS = NODES * GPUS + 2 * NODES;
    platform place;
    struct rng_stream rng[FLOWS];
    comm_slot comms[FLOWS];
    int starts = 0;

    void start(size_t flow)
    {
        starts++;
        double bytes = 1e9 * (0.5 + rng_uniform(&rng[flow])),
               rate_cap = 200e9 * (0.9 + 0.1 * rng_uniform(&rng[flow]));
        place.set_capacity(LINKS + static_cast<int>(flow), rate_cap);
        comms[flow].current = place.send(flow, bytes);
    }

  public:
    static constexpr int FLOW_STARTS = 20000;
    void build()
    {
        for (int g = 0; g < NODES * GPUS; g++)
            place.add_link(235e9);
        for (int n = 0; n < 2 * NODES; n++)
            place.add_link(187e9);
        for (int f = 0; f < FLOWS; f++)
            place.add_link(200e9);
        for (int f = 0; f < FLOWS; f++) {
            rng[f] = rng_stream(2, 1, static_cast<uint64_t>(f));
            std::vector<int> crossed = {LINKS + f};
            for (int i = 0; i < (f < NODES ? GPUS : 2 * NODES); i++)
                crossed.push_back(f < NODES ? f * GPUS + i : NODES * GPUS + i);
            place.add_sender(crossed);
        }
        place.seal();
    }
    void completed(size_t flow)
    {
        comms[flow].last = std::move(comms[flow].current);
        if (starts < FLOW_STARTS)
            start(flow);
    }
    void begin()
    {
        for (size_t f = 0; f < FLOWS; f++)
            start(f);
    }
    double end_s() const { return sg::Engine::get_clock(); }
};

template <class work> static double simulate(work &what, sg::Engine &engine, bool with_build)
{
    double start = now_s();
    what.build();
    if (!with_build)
        start = now_s();
    sg::Activity::on_completion_cb(
        [&what](const sg::Activity &comm) { what.completed(sender_of(comm)); });
    what.begin();
    engine.run();
    return now_s() - start;
}

// The number after a word in a line.
static double figure(const std::string &line, const std::string &word)
{
    size_t at = line.find(word);
    if (at == std::string::npos)
        fail("a line without the figure that was looked for");
    return std::atof(line.c_str() + at + word.size());
}

static int compare(double ratio, double ours_s, double theirs_s)
{
    double apart = std::fabs(theirs_s / ours_s - 1);
    int digits =
        static_cast<int>(-std::fmin(0, std::ceil(std::log10(100 * std::fmax(apart, 1e-14)))));
    std::printf("; %.1f times as long as flopcast, simulated time within %.*f %%\n", ratio, digits,
        std::fmax(std::pow(10, -digits), 100 * apart));
    std::fflush(stdout);
    if (apart <= TOLERANCE)
        return 0;
    std::fprintf(stderr, "bench_simgrid: error: the simulated times are not equal\n");
    return 1;
}

static int bench_ring(sg::Engine &engine, const std::string &ranks)
{
    output plan(std::string("'" BENCH_RING "' ") + ranks + " plan");
    std::string ours = plan.line();
    std::printf("flopcast, %s\n", ours.c_str());
    ring work(plan);
    double took = simulate(work, engine, true);
    std::printf("SimGrid %d.%d, ring, %s ranks: %.4f s, %.0f MB; the collective takes %.12f s",
        SIMGRID_VERSION_MAJOR, SIMGRID_VERSION_MINOR, ranks.c_str(), took, memory_MB(),
        work.end_s());
    return compare(took / figure(ours, "ranks: "), figure(ours, "takes "), work.end_s());
}

static int bench_solver(sg::Engine &engine)
{
    std::string ours = output("'" BENCH_ENGINE "' solver").line();
    std::printf("flopcast, %s\n", ours.c_str());
    solver work;
    double us = simulate(work, engine, false) / solver::FLOW_STARTS * 1e6;
    std::printf("SimGrid %d.%d, solver: %.2f us a flow that comes and goes, %.0f MB; the last ends "
                "at %.12f s",
        SIMGRID_VERSION_MAJOR, SIMGRID_VERSION_MINOR, us, memory_MB(), work.end_s());
    return compare(us / figure(ours, "active: "), figure(ours, "ends at "), work.end_s());
}

int main(int argc, char **argv)
{
    xbt_log_control_set("root.threshold:error");
    sg::Engine engine(&argc, argv);
    for (const char *option : {"network/model:CM02", "network/crosstraffic:0", "network/optim:Lazy",
             "network/latency-factor:1", "network/bandwidth-factor:1", "network/weight-S:0",
             "surf/precision:1e-12"})
        sg::Engine::set_config(option);
    std::string what = argc > 1 ? argv[1] : "", ranks = argc > 2 ? argv[2] : "";
    if (argc == 3 && what == "ring" && !ranks.empty() &&
        ranks.find_first_not_of("0123456789") == std::string::npos)
        return bench_ring(engine, ranks);
    if (argc == 2 && what == "solver")
        return bench_solver(engine);
    std::fprintf(stderr, "usage: bench_simgrid ring RANKS | solver\n");
    return 2;
}
