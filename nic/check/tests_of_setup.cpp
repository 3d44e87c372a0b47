#include <algorithm>
#include <cstring>
#include <memory>
#include <set>

#include "nic/check/counts.h"
#include "nic/check/tests.h"

namespace pw::nic::check {
namespace {

std::string limits(NearEnd& near) {
  const pw_nic_info& info = near.info();
  if (info.largest < 4096) throw Broken{format("info.largest is {}; at least 4096 is asked", info.largest)};
  if (info.copied < 8) throw Broken{format("info.copied is {}; at least 8 is asked", info.copied)};
  if ((info.memory_kinds & 1u << PW_NIC_HOST) == 0)
    throw Broken{"info.memory_kinds is without host memory (1 << PW_NIC_HOST)"};
  return format("up to {} bytes a put or get, {} copied at once, {}", info.largest, info.copied,
                info.in_flight == 0 ? "any number under way" : format("{} under way", info.in_flight));
}

// Endpoints of one process and of several, all open.
std::string numbers(NearEnd& near) {
  constexpr uint32_t kMore = 3;
  const pw_nic_info& info = near.info();
  std::vector<uint32_t> all;
  for (uint32_t rank = 1; rank < kRanks; ++rank) all.push_back(near.number(rank));
  all.push_back(info.number);
  std::vector<std::unique_ptr<End>> more;
  while (more.size() < kMore && all.size() < info.endpoints) {
    more.push_back(std::make_unique<End>(Plugin::load(near.stand().options.plugin), near.stand().job,
                                         near.stand().options.configuration));
    all.push_back(more.back()->info().number);
  }
  for (const auto& end : more) end->close();
  std::set<uint32_t> known;
  for (const uint32_t number : all) {
    if (number >= info.endpoints)
      throw Broken{format("an endpoint has number {}, but info.endpoints is {}", number, info.endpoints)};
    if (!known.insert(number).second)
      throw Broken{
          format("two open endpoints have number {}; each of a job needs one of its own, also those of one "
                 "process",
                 number)};
  }
  return format("{} endpoints of {} processes, of at most {}", all.size(), kRanks, info.endpoints);
}

std::string topology(NearEnd& near) {
  const pw_nic_info& info = near.info();
  if (info.dimensions > PW_NIC_DIMENSIONS)
    throw Broken{format("info.dimensions is {}; at most {}", info.dimensions, PW_NIC_DIMENSIONS)};
  if (info.dimensions == 0) throw Absent{"none is stated"};
  std::string place, extents;
  for (uint32_t d = 0; d < info.dimensions; ++d) {
    if (info.coordinate[d] >= info.extent[d])
      throw Broken{
          format("coordinate[{}] is {}, extent[{}] is {}", d, info.coordinate[d], d, info.extent[d])};
    place += format("{}{}", d == 0 ? "" : ",", info.coordinate[d]);
    extents += format("{}{}", d == 0 ? "" : " x ", info.extent[d]);
  }
  return format("node ({}) of {}", place, extents);
}

std::string hints(NearEnd& near) {
  const pw_nic_info& info = near.info();
  if (!(info.latency_ns > 0) || !(info.bytes_per_s > 0))
    throw Broken{"info.latency_ns and info.bytes_per_s must be positive: routes are first guessed from them"};
  return format("{:.0f} ns, {:.1f} GB/s", info.latency_ns, info.bytes_per_s / 1e9);
}

std::string foreign_addresses(NearEnd& near) {
  const pw_nic_ops& ops = near.end.ops();
  pw_nic_address damaged = near.end.address();
  std::memset(damaged.bytes, 0x5A, sizeof damaged.bytes);
  for (const uint32_t length : {damaged.length, 0u, damaged.length - 1, uint32_t{PW_NIC_ADDRESS_BYTES}}) {
    pw_nic_address address = damaged;
    address.length = length;
    pw_nic_peer* peer = nullptr;
    if (ops.connect(near.end.nic(), &address, &peer) != PW_NIC_OK) continue;
    ops.disconnect(near.end.nic(), peer);
    throw Broken{format("connect() took {} bytes that are no address; PW_NIC_REFUSED is asked", length)};
  }
  const char* why = ops.why(near.end.nic());
  if (why == nullptr || *why == '\0' || std::strchr(why, '\n') != nullptr)
    throw Broken{"after a refusal why() must give one line for people"};
  return format("refused: {}", near.end.why());
}

std::string foreign_keys(NearEnd& near) {
  const pw_nic_ops& ops = near.end.ops();
  for (const uint32_t length : {0u, 8u, near.key(1).length, uint32_t{PW_NIC_KEY_BYTES}}) {
    pw_nic_key key{};
    key.length = length;
    std::memset(key.bytes, 0x5A, sizeof key.bytes);
    pw_nic_remote* remote = nullptr;
    if (ops.import_key(near.end.nic(), near.peer(1), &key, &remote) != PW_NIC_OK) continue;
    // A NIC may notice a bad key only when it is used; then the use must fail.
    Done& done = near.end.fresh();
    pw_nic_status status = near.end.get({remote, 0, near.at(0), near.memory(), 8}, &done);
    if (status == PW_NIC_OK) {
      near.end.wait(done, "a get by a key that is none");
      status = done.status;
    }
    near.end.release(remote);
    if (status == PW_NIC_OK)
      throw Broken{format("{} bytes that are no key were imported and read from", length)};
  }
  return "import_key() or the first use refuses them";
}

std::string itself(NearEnd& near) {
  pw_nic_peer* me = near.end.connect(near.end.address());
  pw_nic_key key{};
  pw_nic_memory* mine = near.end.add(near.arena(0).span(), key);
  pw_nic_remote* remote = near.end.import(me, key);
  *near.arena(0).word(0) = 0;
  *near.word(0) = word_of(7);
  Done &put = near.end.fresh(), &got = near.end.fresh();
  demand(near.end.put({remote, 0, near.at(0), near.memory(), 8}, &put), near.end,
         "a put to the endpoint itself");
  near.end.wait(put, "a put to the endpoint itself");
  near.arrive(0, 0, word_of(7), "a put to the endpoint itself");
  demand(near.end.get({remote, 0, near.at(64), near.memory(), 8}, &got), near.end,
         "a get from the endpoint itself");
  near.end.wait(got, "a get from the endpoint itself");
  if (*near.word(64) != word_of(7)) throw Broken{"a get from the endpoint itself brought other bytes"};
  near.end.release(remote);
  near.end.remove(mine);
  near.end.disconnect(me);
  return "connected, a put and a get";
}

std::string threads(NearEnd&) {
  const PluginThreads threads = plugin_threads();
  if (!threads.lets_in.empty())
    throw Broken{
        format("a thread of the plugin takes {}; block all signals with pthread_sigmask() while it is made, "
               "so that handlers run on the program's threads",
               threads.lets_in)};
  if (threads.count == 0) throw Absent{"the plugin has no threads"};
  return format("{}, which block the signals of programs", threads.count);
}

}  // namespace

std::span<const Test> tests_of_setup() {
  static constexpr Test kTests[] = {
      {"limits", limits},
      {"numbers of endpoints", numbers},
      {"topology", topology},
      {"cost hints", hints},
      {"bytes that are no address", foreign_addresses},
      {"bytes that are no key", foreign_keys},
      {"an endpoint and itself", itself},
      {"threads and signals", threads},
  };
  return kTests;
}

}  // namespace pw::nic::check
