// Registers memory with UCX, and imports keys.
#include "base/format.h"
#include "base/log.h"
#include "base/status.h"
#include "transport/ucx/peer.h"

namespace pw::ucx {

using namespace ucp_abi;

UcxMemory::UcxMemory(std::shared_ptr<UcxEngine> engine, const void* address, uint64_t bytes, bool host)
    : engine_(std::move(engine)), address_(reinterpret_cast<uint64_t>(address)), bytes_(bytes), host_(host) {
  const Library& library = engine_->library_;
  ucp_mem_map_params_t params{};
  params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
  params.address = const_cast<void*>(address);
  params.length = bytes;
  std::lock_guard lock(engine_->mutex_);
  ucs_status_t status = library.ucp_mem_map(engine_->context_, &params, &handle_);
  void* packed = nullptr;
  size_t length = 0;
  if (status == UCS_OK &&
      (status = library.ucp_rkey_pack(engine_->context_, handle_, &packed, &length)) != UCS_OK)
    library.ucp_mem_unmap(engine_->context_, handle_);
  if (status != UCS_OK)
    throw Error(PW_UNAVAILABLE,
                format("UCX {} could not register {} bytes at {}: {}; RDMA needs a large enough "
                       "locked-memory limit (ulimit -l)",
                       library.version, bytes, address, text_of(library, status)));
  number_ = ++engine_->numbered_;
  engine_->memories_.emplace(number_, this);
  ByteWriter key;
  key.put(number_);
  key.put(ByteView(static_cast<std::byte*>(packed), length));
  key_ = key.take();
  library.ucp_rkey_buffer_release(packed);
}

UcxMemory::~UcxMemory() {
  UcxEngine::Lock lock(engine_->mutex_);
  engine_->memories_.erase(number_);  // from now on messages for it are refused
  engine_->drop(*this);
  if (engine_->settle(lock, *this)) {
    engine_->library_.ucp_mem_unmap(engine_->context_, handle_);
    return;
  }
  log(LogLevel::warning, "a region was closed while UCX still used it; flush before you close");
  engine_->forget(*this);
  engine_->abandoned_.push_back(handle_);
}

UcxRemoteMemory::UcxRemoteMemory(std::shared_ptr<UcxEngine> engine, int rank, ByteView key)
    : engine_(std::move(engine)) {
  std::lock_guard lock(engine_->mutex_);
  UcxEngine::UcxPeer& peer = engine_->connect(rank);
  if (engine_->failure_of(peer) != PW_OK) throw Error(PW_PEER_LOST, last_error_message());
  ByteReader from(key, "a key of UCX");
  number_ = from.get<uint64_t>();
  const ucs_status_t status =
      engine_->library_.ucp_ep_rkey_unpack(peer.endpoint, from.rest().data(), &handle_);
  if (status != UCS_OK)
    throw Error(PW_BAD_KEY,
                format("UCX {} cannot use the key that rank {} gave it ({} bytes): {}; use one UCX on "
                       "all hosts",
                       engine_->library_.version, rank, key.size(), text_of(engine_->library_, status)));
}

UcxRemoteMemory::~UcxRemoteMemory() {
  UcxEngine::Lock lock(engine_->mutex_);
  engine_->drop(*this);
  if (engine_->settle(lock, *this))
    engine_->library_.ucp_rkey_destroy(handle_);
  else
    engine_->forget(*this);
}

}  // namespace pw::ucx
