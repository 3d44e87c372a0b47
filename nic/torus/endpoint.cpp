#include "torus/endpoint.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/format.h"
#include "base/host_id.h"
#include "base/random.h"
#include "torus/failure.h"
#include "torus/gpu.h"

namespace pw::torus {
namespace {

constexpr uint32_t kPlaceMagic = 0x41525450;  // "PTRA"

uint64_t hash_of(std::string_view text) {
  return first_word(siphash(Secret{}, std::as_bytes(std::span(text.data(), text.size()))));
}

// Returns a random number that nobody can guess and that no two endpoints share; 0 means none.
uint64_t new_session() {
  const auto bytes = random_bytes<sizeof(uint64_t)>();
  return std::max<uint64_t>(1, std::bit_cast<uint64_t>(bytes));
}

// Identifies the network namespace: addresses of this host are not those of another namespace.
uint64_t network_space() {
  struct stat status{};
  return ::stat("/proc/self/ns/net", &status) == 0 ? status.st_ino : 0;
}

std::optional<Secret> secret_of(const pw_nic_options& options) {
  if (options.secret == nullptr) return std::nullopt;
  Secret secret;
  static_assert(sizeof secret == PW_NIC_SECRET_BYTES);
  std::memcpy(secret.data(), options.secret, sizeof secret);
  return secret;
}

std::vector<uint32_t> addresses_here() {
  std::vector<uint32_t> addresses;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return addresses;
  for (const ifaddrs* interface = list; interface != nullptr; interface = interface->ifa_next)
    if (interface->ifa_addr != nullptr && interface->ifa_addr->sa_family == AF_INET)
      addresses.push_back(reinterpret_cast<const sockaddr_in*>(interface->ifa_addr)->sin_addr.s_addr);
  freeifaddrs(list);
  return addresses;
}

Grid make_grid(const TorusFile& file) {
  Grid grid(file.extents);
  for (const auto& [a, b] : file.cut) grid.cut(a, b);
  for (const Death& death : file.dead)
    if (death.after_ns == 0) grid.kill(death.node);
  return grid;
}

std::string configuration_of(const pw_nic_options& options) {
  return options.configuration == nullptr ? "" : options.configuration;
}

}  // namespace

Endpoint::Endpoint(const pw_nic_options& options)
    : options_(parse_options(configuration_of(options))),
      file_(load_torus(options_.file, file_text_)),
      secret_(secret_of(options)),
      grid_(make_grid(file_)),
      direct_(!needs_engine(file_)),
      session_(new_session()) {
  allow_attachment();
  self_.magic = kPlaceMagic;
  self_.job = hash_of(format("job {}", options.job));
  self_.fingerprint = hash_of(file_text_) | 1;
  self_.process = getpid();
  self_.session = session_;
  self_.beacon = reinterpret_cast<uint64_t>(&session_);
  join_job(options.job);
  const uint16_t port = file_.nodes.empty() ? uint16_t{0} : file_.nodes[node_].port;
  const auto context = static_cast<uint16_t>(self_.number % file_.contexts);
  const uint64_t seed = file_.faults.seed * 0xbf58476d1ce4e5b9 + self_.number;
  try {
    wire_ = std::make_unique<Wire>(self_.ip, port == 0 ? port : static_cast<uint16_t>(port + context),
                                   file_.faults, seed, moved_);
    if (is_sent_datagrams()) wire_->open();
    self_.port = directory_->shared().entry[self_.number].port = wire_->port();
    const Secret key =
        secret_ ? derive_secret(*secret_, "peerway torus datagrams") : directory_->shared().secret;
    engine_ =
        std::make_unique<Engine>(Surroundings{file_, *directory_, self_, node_, key}, grid_, *wire_, moved_);
  } catch (...) {
    directory_->leave();
    throw;
  }
  ended_.reserve(kEndedAtOnce);
}

Endpoint::~Endpoint() {
  engine_->finish();
  progress();
  engine_.reset();
  for (const auto& peer : peers_) settle(*peer);
  directory_->leave();
  if (options_.counters.empty()) return;
  Counters sum = moved_;
  sum.puts = posted_.puts, sum.put_bytes = posted_.put_bytes;
  sum.gets = posted_.gets, sum.get_bytes = posted_.get_bytes;
  sum.by_memory += posted_.by_memory;
  sum.refused += posted_.refused;
  sum.unreachable += posted_.unreachable;
  write_counters(options_.counters, self_.number, node_, sum, links_, grid_);
}

// Returns the living nodes whose address this host (or network namespace) has.
std::vector<uint32_t> Endpoint::nodes_here() const {
  const auto addresses = addresses_here();
  std::vector<uint32_t> here;
  for (uint32_t node = 0; node < file_.node_count(); ++node)
    if (!grid_.dead(node) && (file_.nodes.empty() || std::find(addresses.begin(), addresses.end(),
                                                               file_.nodes[node].ip) != addresses.end()))
      here.push_back(node);
  return here;
}

bool Endpoint::has_other_hosts() const {
  return std::ranges::any_of(file_.nodes, [&](const NodeAddress& node) { return node.ip != self_.ip; });
}

// Other endpoints have a socket only once it is needed: an endpoint to which nobody can send needs no
// defence.
bool Endpoint::is_sent_datagrams() const {
  return has_other_hosts() || file_.faults.of_packets() || gpu_available();
}

// Takes a (node, context). Nodes with one address are one host and share a directory.
void Endpoint::join_job(uint64_t job) {
  const auto here = nodes_here();
  if (here.empty())
    throw Failure(PW_NIC_INVALID,
                  "torus: this host has the address of no living node of the torus file; `ip address` "
                  "shows those that it has");
  std::vector<uint32_t> wanted = here;
  const auto rank = launcher_rank();
  if (options_.node) {
    if (std::find(here.begin(), here.end(), *options_.node) == here.end())
      throw Failure(PW_NIC_INVALID, format("torus: node={} is dead or not on this host; nodes {} to {} are",
                                           *options_.node, here.front(), here.back()));
    wanted = {*options_.node};
  } else if (rank) {
    wanted = {here[*rank % here.size()]};
  }
  // Without addresses in the file all nodes are on this host, and datagrams go through loopback.
  self_.ip = file_.nodes.empty() ? htonl(INADDR_LOOPBACK) : file_.nodes[wanted.front()].ip;
  if (!file_.nodes.empty())
    std::erase_if(wanted, [&](uint32_t node) { return file_.nodes[node].ip != self_.ip; });
  if (!secret_ && has_other_hosts())
    throw Failure(
        PW_NIC_INVALID,
        "torus: the torus file has other hosts, and this job has no secret by which its datagrams are "
        "told from a stranger's: set PEERWAY_NIC_SECRET to the same 32 hexadecimal digits for all "
        "ranks (openssl rand -hex 16), not on a command line; peerway mpirun does");
  const std::string place =
      format("peerway torus board {} {} {} {} {}", job, getuid(), host_id(), network_space(), self_.ip);
  const std::string name = "peerway-torus-" + to_hex(derive_secret(secret_.value_or(Secret{}), place));
  self_.host = hash_of(name);
  const auto nodes = static_cast<uint32_t>(wanted.size());
  directory_ =
      std::make_unique<Directory>(name, self_.fingerprint, session_, nodes * file_.contexts,
                                  [&](uint32_t i) { return wanted[i % nodes] * file_.contexts + i / nodes; });
  self_.number = directory_->number();
  if (self_.number == UINT32_MAX)
    throw Failure(PW_NIC_BUSY,
                  format("torus: {} of {} open; allow more in the torus file (\"contexts\"), at most {} "
                         "endpoints in all",
                         file_.contexts == 1 ? "the one context" : format("all {} contexts", file_.contexts),
                         format("{} {}", nodes == 1 ? format("node {}", wanted.front()) : "all nodes here",
                                file_.contexts == 1 ? "is" : "are"),
                         kMostEndpoints));
  node_ = self_.number / file_.contexts;
}

void Endpoint::query(pw_nic_info& info) const {
  info.guarantees = file_.stated;
  info.memory_kinds = 1u << PW_NIC_HOST | (gpu_available() ? 1u << PW_NIC_CUDA : 0u);
  info.largest = kLargest;
  info.copied = kCopied;
  info.in_flight = Engine::kInFlight;
  info.number = self_.number;
  info.endpoints = file_.node_count() * file_.contexts;
  info.dimensions = static_cast<uint32_t>(file_.extents.size());
  std::copy(file_.extents.begin(), file_.extents.end(), info.extent);
  const auto at = grid_.coordinates(node_);
  std::copy(at.begin(), at.end(), info.coordinate);
  info.latency_ns = file_.latency_ns;
  info.bytes_per_s = file_.gbit_per_s * 1e9 / 8;
}

void Endpoint::address(pw_nic_address& address) const {
  address.length = sizeof self_;
  std::memcpy(address.bytes, &self_, sizeof self_);
}

std::shared_ptr<TorusPeer> Endpoint::connect(const pw_nic_address& address) {
  EndpointAddress place{};
  if (address.length == sizeof place) std::memcpy(&place, address.bytes, sizeof place);
  if (place.magic != kPlaceMagic || place.number >= file_.node_count() * file_.contexts)
    throw Failure(PW_NIC_REFUSED,
                  format("torus: {} bytes that are not an address of a torus endpoint", address.length));
  if (place.job != self_.job)
    throw Failure(PW_NIC_REFUSED, format("torus: endpoint {} belongs to another job", place.number));
  if (place.fingerprint != self_.fingerprint)
    throw Failure(PW_NIC_REFUSED,
                  format("torus: endpoint {} read another torus file; give all the same one", place.number));
  auto peer = std::make_shared<TorusPeer>(place, file_.guarantees);
  peer->node = place.number / file_.contexts;
  if (place.host == self_.host) {
    peer->entry = &directory_->shared().entry[place.number];
    peer->attach = place.process == getpid() || may_attach(place.process, place.beacon, place.session);
    if (!(peer->attach && !gpu_available()) && place.port == 0) need_port(place);
  } else if (place.port == 0) {
    throw Failure(PW_NIC_UNREACHABLE,
                  format("torus: endpoint {} is on another host or in another container, and the torus file "
                         "gives no addresses (\"nodes\")",
                         place.number));
  }
  engine_->add(peer);
  if (peer->gone()) {
    const bool route = peer->route_to.exists;
    engine_->remove(peer);
    throw Failure(
        PW_NIC_UNREACHABLE,
        route ? format("torus: endpoint {} is closed", place.number)
              : format("torus: no route leads from node {} to node {}: one is dead, or all links are cut",
                       node_, peer->node));
  }
  peers_.push_back(peer);
  return peer;
}

// Requests a UDP socket of a peer that cannot be reached by memory alone.
void Endpoint::need_port(const EndpointAddress& place) const {
  const EndpointEntry& entry = directory_->shared().entry[place.number];
  if (entry.session.load() != place.session) return;  // it is closed, which other checks report
  if (directory_->request_port(place.number) == 0 && entry.session.load() == place.session)
    throw Failure(
        PW_NIC_UNREACHABLE,
        format("torus: the memory of process {} cannot be reached, and it opens no UDP socket; is it "
               "stopped, or out of descriptors?",
               place.process));
}

void Endpoint::disconnect(const std::shared_ptr<TorusPeer>& peer) {
  engine_->remove(peer);
  settle(*peer);
  std::erase(peers_, peer);
}

std::shared_ptr<Memory> Endpoint::add_memory(const pw_nic_span& span, pw_nic_key& key) {
  if (span.kind != PW_NIC_HOST && !(span.kind == PW_NIC_CUDA && gpu_available()))
    throw Failure(PW_NIC_REFUSED, span.kind == PW_NIC_CUDA
                                      ? "torus: memory of a GPU, but no CUDA driver with a GPU is here"
                                      : format("torus: memory of kind {}; host (0) and CUDA (1) are known",
                                               static_cast<int>(span.kind)));
  EndpointEntry& entry = directory_->shared().entry[self_.number];
  if (free_slots_.empty() && next_slot_ == kSlots)
    throw Failure(PW_NIC_BUSY, format("torus: {} memories are registered; no more are possible", kSlots));
  const uint32_t slot = free_slots_.empty() ? next_slot_ : free_slots_.back();
  auto& generation = directory_->generation(slot);
  auto memory = make_memory(span, slot, generation.load() + 1);
  if (free_slots_.empty())
    ++next_slot_;
  else
    free_slots_.pop_back();
  if (entry.used.load() < next_slot_) entry.used = next_slot_;
  engine_->add(memory);
  generation = memory->generation;
  write_key(*memory, self_.number, key);
  return memory;
}

void Endpoint::remove_memory(const std::shared_ptr<Memory>& memory) {
  directory_->shared().generation[self_.number][memory->slot].fetch_add(1);
  engine_->remove(memory);
  directory_->wait_untouched(Directory::tag(self_.number, memory->slot));
  free_slots_.push_back(memory->slot);
}

std::shared_ptr<PeerMemory> Endpoint::import(const TorusPeer& peer, const pw_nic_key& bytes) const {
  Key key{};
  if (!read_key(bytes, key) || key.number != peer.place.number)
    throw Failure(PW_NIC_REFUSED, format("torus: no key of memory of endpoint {}", peer.place.number));
  const auto* generation =
      peer.entry == nullptr ? nullptr : &directory_->shared().generation[key.number][key.slot];
  return std::make_shared<PeerMemory>(key, generation, peer.attach);
}

}  // namespace pw::torus
