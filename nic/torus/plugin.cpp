// The entries of peerway/nic.h.
#include <algorithm>
#include <cstring>
#include <string>

#include "base/status.h"
#include "torus/endpoint.h"
#include "torus/failure.h"

using pw::torus::Endpoint;
using pw::torus::Failure;

struct pw_nic {
  explicit pw_nic(const pw_nic_options& options) : endpoint(options) {}
  Endpoint endpoint;
  std::string why;
};
struct pw_nic_peer {
  std::shared_ptr<pw::torus::TorusPeer> peer;
};
struct pw_nic_memory {
  std::shared_ptr<pw::torus::Memory> memory;
};
struct pw_nic_remote {
  std::shared_ptr<pw::torus::TorusPeer> peer;
  std::shared_ptr<pw::torus::PeerMemory> target;
};

namespace {

thread_local std::string why_not_open;

/// Set-up throws; this converts the exception to a status and a line of text.
template <typename Body>
pw_nic_status attempt(std::string& why, Body&& body) noexcept {
  try {
    body();
    why.clear();
    return PW_NIC_OK;
  } catch (const Failure& failure) {
    why = failure.what();
    return failure.status();
  } catch (const pw::Error& error) {
    why = error.what();
    return PW_NIC_INVALID;
  } catch (const std::exception& error) {
    why = std::string("torus: ") + error.what();
    return PW_NIC_BROKEN;
  }
}

pw_nic_status fail_with(pw_nic* nic, pw_nic_status status) {
  switch (status) {
    case PW_NIC_INVALID:
      nic->why = "torus: bytes outside of the memory, or more than query() states";
      break;
    case PW_NIC_UNREACHABLE:
      nic->why = "torus: the peer is gone";
      break;
    case PW_NIC_REFUSED:
      nic->why = "torus: the peer's memory is no longer registered";
      break;
    case PW_NIC_BUSY:
      nic->why = "torus: no room for another operation now";
      break;
    default:
      break;
  }
  return status;
}

/// Copies the fields that both sides know from a struct of the caller, which may be of another version.
template <typename Struct>
Struct known_part(const Struct* given) {
  Struct known{};
  if (given != nullptr) std::memcpy(static_cast<void*>(&known), given, std::min(given->size, sizeof known));
  return known;
}

pw_nic_status torus_open(const pw_nic_options* options, pw_nic** nic) {
  return attempt(why_not_open, [&] { *nic = new pw_nic(known_part(options)); });
}

void torus_close(pw_nic* nic) { delete nic; }

void torus_query(pw_nic* nic, pw_nic_info* info) {
  pw_nic_info full{};
  nic->endpoint.query(full);
  full.size = info->size;
  std::memcpy(static_cast<void*>(info), &full, std::min(info->size, sizeof full));
}

void torus_address(pw_nic* nic, pw_nic_address* address) { nic->endpoint.address(*address); }

const char* torus_why(pw_nic* nic) { return nic == nullptr ? why_not_open.c_str() : nic->why.c_str(); }

pw_nic_status torus_connect(pw_nic* nic, const pw_nic_address* address, pw_nic_peer** peer) {
  return attempt(nic->why, [&] { *peer = new pw_nic_peer{nic->endpoint.connect(*address)}; });
}

void torus_disconnect(pw_nic* nic, pw_nic_peer* peer) {
  nic->endpoint.disconnect(peer->peer);
  delete peer;
}

pw_nic_status torus_register(pw_nic* nic, const pw_nic_span* span, pw_nic_memory** memory, pw_nic_key* key) {
  return attempt(nic->why,
                 [&] { *memory = new pw_nic_memory{nic->endpoint.add_memory(known_part(span), *key)}; });
}

void torus_deregister(pw_nic* nic, pw_nic_memory* memory) {
  nic->endpoint.remove_memory(memory->memory);
  delete memory;
}

pw_nic_status torus_import(pw_nic* nic, pw_nic_peer* peer, const pw_nic_key* key, pw_nic_remote** remote) {
  return attempt(nic->why,
                 [&] { *remote = new pw_nic_remote{peer->peer, nic->endpoint.import(*peer->peer, *key)}; });
}

void torus_release(pw_nic*, pw_nic_remote* remote) { delete remote; }

pw_nic_status torus_put(pw_nic* nic, pw_nic_remote* remote, uint64_t offset, const void* data,
                        pw_nic_memory* memory, uint64_t bytes, pw_nic_done* done) {
  const pw_nic_status status =
      nic->endpoint.put({remote->peer, remote->target, offset, const_cast<void*>(data),
                         memory == nullptr ? nullptr : &memory->memory, bytes, done});
  return status == PW_NIC_OK ? status : fail_with(nic, status);
}

pw_nic_status torus_get(pw_nic* nic, pw_nic_remote* remote, uint64_t offset, void* data,
                        pw_nic_memory* memory, uint64_t bytes, pw_nic_done* done) {
  const pw_nic_status status =
      nic->endpoint.get({remote->peer, remote->target, offset, data,
                         memory == nullptr ? nullptr : &memory->memory, bytes, done});
  return status == PW_NIC_OK ? status : fail_with(nic, status);
}

unsigned torus_progress(pw_nic* nic) { return nic->endpoint.progress(); }

constexpr pw_nic_ops kTorusOps{
    .abi = PW_NIC_ABI,
    .size = sizeof(pw_nic_ops),
    .name = "torus",
    .open = torus_open,
    .close = torus_close,
    .query = torus_query,
    .address = torus_address,
    .why = torus_why,
    .connect = torus_connect,
    .disconnect = torus_disconnect,
    .register_memory = torus_register,
    .deregister_memory = torus_deregister,
    .import_key = torus_import,
    .release_key = torus_release,
    .put = torus_put,
    .get = torus_get,
    .progress = torus_progress,
    .put_strided = nullptr,  // the NIC has only put and get
    .put_with_word = nullptr,
    .fetch_add = nullptr,
    .event = nullptr,
    .arm = nullptr,
};

}  // namespace

const pw_nic_ops* pw_nic_plugin(void) { return &kTorusOps; }
