#include "transport/ucx/engine.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "base/clock.h"
#include "base/format.h"
#include "base/log.h"
#include "base/status.h"
#include "transport/ucx/memory_kinds.h"
#include "transport/ucx/peer.h"
#include "transport/ucx/wait.h"

namespace pw::ucx {

using namespace ucp_abi;

namespace {

// UCX keeps memory that ranks of a host share in files there. If they do not fit, it only says "Out of
// memory".
std::string room_to_share() {
  struct statvfs shm{};
  if (statvfs("/dev/shm", &shm) != 0) return "";
  return format(" (/dev/shm, where it shares memory, has {} KiB left)", shm.f_bavail * shm.f_frsize >> 10);
}

}  // namespace

UcxEngine::UcxEngine(const Library& library, Team& team, const std::atomic<uint32_t>& closed,
                     Progress& progress)
    : library_(library),
      team_(team),
      closed_(closed),
      progress_(progress),
      peers_(static_cast<size_t>(team.size())) {
  try {
    open();
  } catch (...) {
    if (worker_ != nullptr) library_.ucp_worker_destroy(worker_);
    if (copied_ != 0) library_.ucp_dt_destroy(copied_);
    if (context_ != nullptr) library_.ucp_cleanup(context_);
    throw;
  }
}

void UcxEngine::open() {
  const auto check = [&](ucs_status_t status, const char* call) {
    if (status != UCS_OK)
      throw Error(PW_UNAVAILABLE,
                  format("UCX {} ({}) could not {}: {}{}; `ucx_info -d` shows what it finds, UCX_TLS "
                         "and UCX_NET_DEVICES restrict it",
                         library_.version, library_.path, call, text_of(library_, status),
                         status == UCS_ERR_NO_MEMORY ? room_to_share() : ""));
  };
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS;
  params.features = UCP_FEATURE_RMA | UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
  params.estimated_num_eps = static_cast<size_t>(team_.size());
  check(library_.ucp_init_version(1, 13, &params, nullptr, &context_), "start");
  ucp_context_attr_t context{};
  context.field_mask = UCP_ATTR_FIELD_MEMORY_TYPES;
  check(library_.ucp_context_query(context_, &context), "say which memory it sees");
  memory_kinds_ = kinds_among(context.memory_types, library_.memory_types);
  ucp_worker_params_t how{};
  how.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  how.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  check(library_.ucp_worker_create(context_, &how, &worker_), "make a worker");
  ucp_am_handler_param_t messages{};
  messages.field_mask =
      UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
  messages.cb = on_message;
  messages.arg = this;
  check(library_.ucp_worker_set_am_recv_handler(worker_, &messages), "listen to messages");
  messages.id = kOperations;
  messages.cb = on_part;
  check(library_.ucp_worker_set_am_recv_handler(worker_, &messages), "listen to operations");
  check(let_ucx_copy(), "describe messages");
  check(library_.ucp_worker_get_efd(worker_, &event_), "make its events waitable");
  ucp_worker_attr_t worker{};
  worker.field_mask = UCP_WORKER_ATTR_FIELD_ADDRESS;
  check(library_.ucp_worker_query(worker_, &worker), "give its address");
  const auto* bytes = reinterpret_cast<const std::byte*>(worker.address);
  address_.assign(bytes, bytes + worker.address_length);
  library_.ucp_worker_release_address(worker_, worker.address);
}

void UcxEngine::set_addresses(std::function<Bytes(int)> address_of) {
  {
    Lock lock(mutex_);
    address_of_ = std::move(address_of);
  }
  losses_ = team_.on_loss([this](int) {
    lost_.store(true);
    progress_.wake();
  });
}

UcxEngine::~UcxEngine() {
  losses_.reset();
  Lock lock(mutex_);
  for (auto& peer : peers_)
    if (peer != nullptr)
      peer->failed() || team_.lost(peer->rank) ? peer->close_broken() : peer->close_orderly();
  for (ucp_mem_h memory : abandoned_) library_.ucp_mem_unmap(context_, memory);
  library_.ucp_worker_destroy(worker_);
  if (copied_ != 0) library_.ucp_dt_destroy(copied_);
  library_.ucp_cleanup(context_);
}

void UcxEngine::keep(std::shared_ptr<void> memory) {
  Lock lock(mutex_);
  kept_.push_back(std::move(memory));
}

// ---- progress ----

// Polls UCX so that pending errors are reported before a send. UCX closes a broken connection in one poll and
// calls its error handler in a later one; a send in between ends the process ("Fatal: unexpected error:
// Endpoint timeout", seen with UCX 1.22).
void UcxEngine::poll_errors(const UcxPeer& peer) {
  constexpr int kMostTurns = 16;
  if (peer.by_messages) return;
  for (int turns = 0; turns < kMostTurns && library_.ucp_worker_progress(worker_) > 0; ++turns) {
  }
}

unsigned UcxEngine::advance() {
  const unsigned done = library_.ucp_worker_progress(worker_);
  if (lost_.exchange(false, std::memory_order_relaxed)) {
    for (auto& peer : peers_)
      if (peer != nullptr && team_.lost(peer->rank)) broken_ |= peer->fail(UCS_ERR_CONNECTION_RESET);
  }
  if (broken_) close_broken();
  if (std::exchange(answers_due_, false))
    for (auto& peer : peers_)
      if (peer != nullptr) answer(*peer);
  if (std::exchange(words_ready_, false))
    for (auto& peer : peers_)
      if (peer != nullptr) send_words(*peer);
  if (!backlogged_.empty()) resume_all();
  if (!awaiting_flush_.empty()) advance_flushes();
  return done;
}

// Closes broken connections by force, so that UCX returns the operations that were under way on them.
void UcxEngine::close_broken() {
  broken_ = false;
  for (auto& peer : peers_)
    if (peer != nullptr && peer->failed()) peer->close_broken();
}

bool UcxEngine::poll() {
  const Lock lock(mutex_, std::try_to_lock);
  return lock.owns_lock() && advance() > 0;
}

Armed UcxEngine::arm(bool) {
  constexpr uint64_t kTimers = 1'000'000'000;  // ns: UCX must be polled now and then for its own timers
  const Lock lock(mutex_);
  return library_.ucp_worker_arm(worker_) == UCS_ERR_BUSY ? Armed{-1, 0} : Armed{event_, kTimers};
}

// ---- connections ----

UcxEngine::UcxPeer& UcxEngine::connect(int rank) {
  UcxPeer& peer = peer_of(rank);
  if (peer.connected) return peer;
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER;
  const Bytes address = address_of_(rank);
  params.address = reinterpret_cast<const ucp_address_t*>(address.data());
  params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  params.err_handler = {on_error, &peer};
  const ucs_status_t status = library_.ucp_ep_create(worker_, &params, &peer.endpoint);
  if (status != UCS_OK)
    throw Error(PW_UNAVAILABLE,
                format("UCX {} found no way to rank {}: {}; both ends need a transport in common "
                       "(`ucx_info -d`, UCX_TLS, UCX_NET_DEVICES)",
                       library_.version, rank, text_of(library_, status)));
  peer.connected = true;
  peer.by_messages = !reaches_memory(peer.endpoint);
  return peer;
}

UcxEngine::UcxPeer& UcxEngine::peer_of(int rank) {
  auto& entry = peers_[static_cast<size_t>(rank)];
  if (entry == nullptr) entry = std::make_unique<UcxPeer>(*this, rank);
  return *entry;
}

// Returns whether the connection supports remote access. UCX does not say whether it emulates that, and it
// does if all transports of the connection can only send. It lists them as "lane[0]:  1:tcp/eth0.0 md[1]
// ...".
bool UcxEngine::reaches_memory(ucp_ep_h endpoint) const {
  constexpr std::string_view kOnlySend[] = {"tcp", "ud_", "srd", "cuda_", "gdr_copy", "rocm_", "ze_"};
  char* text = nullptr;
  size_t length = 0;
  FILE* out = open_memstream(&text, &length);
  if (out == nullptr) return false;
  library_.ucp_ep_print_info(endpoint, out);
  fclose(out);
  const std::unique_ptr<char, decltype(&std::free)> owner(text, std::free);
  std::string_view rest(text, length);
  for (size_t lane = 0; (lane = rest.find("lane[")) != std::string_view::npos;) {
    rest.remove_prefix(lane + 5);
    const std::string_view line = rest.substr(0, rest.find('\n'));
    const size_t slash = line.find('/');
    const size_t name = slash == std::string_view::npos ? slash : line.rfind(':', slash);
    if (name == std::string_view::npos) continue;
    const std::string_view transport = line.substr(name + 1, slash - name - 1);
    if (std::ranges::none_of(kOnlySend, [&](std::string_view start) { return transport.starts_with(start); }))
      return true;
  }
  return false;
}

bool UcxEngine::by_messages(int rank) {
  Lock lock(mutex_);
  return connect(rank).by_messages;
}

void UcxEngine::on_error(void* argument, ucp_ep_h, ucs_status_t status) {
  UcxPeer& peer = *static_cast<UcxPeer*>(argument);
  peer.engine.broken_ |= peer.fail(status);
}

bool UcxEngine::failed(int rank) {
  if (failures_.load(std::memory_order_relaxed) == 0) return false;
  Lock lock(mutex_);
  const auto& peer = peers_[static_cast<size_t>(rank)];
  return peer != nullptr && peer->failed();
}

pw_status UcxEngine::failure(int rank) {
  Lock lock(mutex_);
  const auto& peer = peers_[static_cast<size_t>(rank)];
  return peer != nullptr ? failure_of(*peer) : PW_OK;
}

pw_status UcxEngine::failure_of(UcxPeer& peer) {
  if (team_.lost(peer.rank)) return pw::fail(PW_PEER_LOST, team_.describe_loss(peer.rank));
  if (!peer.failed()) return PW_OK;
  return pw::fail(PW_PEER_LOST, format("the connection of UCX to rank {} broke: {}", peer.rank,
                                       text_of(library_, peer.failure)));
}

}  // namespace pw::ucx
