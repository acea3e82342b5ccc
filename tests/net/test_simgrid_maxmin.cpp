// The rates of net/maxmin.h against those of SimGrid 3.32 (its model CM02 without latency: plain
// max-min sharing) on 1,000 random networks, each in a separate zone. All flows start at 0 s; after
// a second what is left of each says its rate. SimGrid knows no weights through its interface, and
// a rate cap here is a private link there.
#include <simgrid/s4u.hpp>

#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

extern "C" {
#include "base/rng.h"
#include "net/maxmin.h"
}

namespace sg = simgrid::s4u;

static constexpr int NETWORKS = 1000, MOST_LINKS = 20, MOST_FLOWS = 40, MOST_USES = 4;
static constexpr double TOLERANCE = 1e-9;
static constexpr double ENOUGH_BYTES =
    1e12; // more than the fastest flow moves in a second, few enough to count exactly

struct network {
    std::vector<double> capacity;
    std::vector<std::vector<link_weight>> weights;
    std::vector<double> rate_cap, rates;
};

static network draw(struct rng_stream *rng)
{
    network net;
    int links = 1 + static_cast<int>(rng_uniform(rng) * MOST_LINKS);
    int flows = 1 + static_cast<int>(rng_uniform(rng) * MOST_FLOWS);
    for (int l = 0; l < links; l++)
        net.capacity.push_back(1e9 * (1 + 99 * rng_uniform(rng)));
    for (int f = 0; f < flows; f++) {
        std::vector<link_weight> weights;
        int first = static_cast<int>(rng_uniform(rng) * links),
            stride = 1 + static_cast<int>(rng_uniform(rng) * 5);
        int n = 1 + static_cast<int>(rng_uniform(rng) * MOST_USES);
        for (int u = 0; u < n && first + u * stride < links; u++)
            weights.push_back({first + u * stride, 1});
        net.weights.push_back(weights);
        net.rate_cap.push_back(
            rng_uniform(rng) < 0.3 ? 1e9 * (0.1 + 20 * rng_uniform(rng)) : HUGE_VAL);
    }
    return net;
}

static void solve(network *net)
{
    std::vector<maxmin_flow> flows;
    for (size_t f = 0; f < net->weights.size(); f++)
        flows.push_back(
            {net->rate_cap[f], net->weights[f].data(), static_cast<int>(net->weights[f].size())});
    std::vector<double> left(net->capacity.size()), load(net->capacity.size());
    net->rates.resize(flows.size());
    maxmin_solve(net->rates.data(), flows.data(), static_cast<int>(flows.size()),
        net->capacity.data(), left.data(), load.data());
}

struct ends {
    sg::Host *from, *to;
};

static std::vector<ends> build(sg::NetZone *root, const network &net, int number)
{
    std::string name = "n" + std::to_string(number) + "_";
    sg::NetZone *zone = sg::create_full_zone(name + "zone")->set_parent(root);
    std::vector<sg::Link *> links;
    for (size_t l = 0; l < net.capacity.size(); l++)
        links.push_back(zone->create_link(name + "l" + std::to_string(l), net.capacity[l])
                            ->set_latency(0)
                            ->seal());
    std::vector<ends> hosts;
    for (size_t f = 0; f < net.weights.size(); f++) {
        std::string flow = name + "f" + std::to_string(f);
        ends pair = {
            zone->create_host(flow + "a", 1e9)->seal(), zone->create_host(flow + "b", 1e9)->seal()};
        std::vector<sg::LinkInRoute> route;
        for (const link_weight &w : net.weights[f])
            route.emplace_back(links[static_cast<size_t>(w.link)]);
        if (std::isfinite(net.rate_cap[f]))
            route.emplace_back(
                zone->create_link(flow + "cap", net.rate_cap[f])->set_latency(0)->seal());
        zone->add_route(
            pair.from->get_netpoint(), pair.to->get_netpoint(), nullptr, nullptr, route, false);
        hosts.push_back(pair);
    }
    zone->seal();
    return hosts;
}

int main(int argc, char **argv)
{
    sg::Engine engine(&argc, argv);
    for (const char *option : {"network/model:CM02", "network/crosstraffic:0", "network/optim:Full",
             "network/latency-factor:0", "network/bandwidth-factor:1", "network/weight-S:0",
             "maxmin/precision:1e-13"})
        sg::Engine::set_config(option);
    sg::NetZone *root = sg::create_full_zone("root");
    struct rng_stream rng = rng_stream(5, 1, 1);
    std::vector<network> networks;
    std::vector<std::vector<ends>> hosts;
    size_t flows = 0;
    for (int i = 0; i < NETWORKS; i++) {
        networks.push_back(draw(&rng));
        solve(&networks.back());
        hosts.push_back(build(root, networks.back(), i));
        flows += hosts.back().size();
    }
    root->seal();
    double worst = 0;
    size_t compared = 0;
    sg::Actor::create("start", hosts[0][0].from, [&] {
        std::vector<sg::CommPtr> comms;
        for (const auto &network_hosts : hosts)
            for (const ends &pair : network_hosts)
                comms.push_back(sg::Comm::sendto_async(
                    pair.from, pair.to, static_cast<uint64_t>(ENOUGH_BYTES)));
        sg::this_actor::sleep_for(1);
        for (const network &net : networks)
            for (double rate : net.rates) {
                double theirs = ENOUGH_BYTES - comms[compared++]->get_remaining();
                worst = std::fmax(worst, std::fabs(rate - theirs) / theirs);
            }
        for (const sg::CommPtr &comm : comms)
            comm->cancel();
    });
    engine.run();
    std::printf(
        "%d networks, %zu flows: largest relative difference %.3g\n", NETWORKS, compared, worst);
    return compared == flows && worst <= TOLERANCE ? 0 : 1;
}
