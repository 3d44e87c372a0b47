// The stream for a NIC without guarantees: it asks the peer to get the bytes and store the words, and the
// peer answers when that is done (nic/service.h is the other end).
#pragma once

#include <array>
#include <memory>

#include "nic/message.h"
#include "nic/outstanding.h"
#include "nic/stream.h"

namespace pw::nic {

class RequestStream final : public Stream {
 public:
  RequestStream(Endpoint& endpoint, std::shared_ptr<Connection> connection);
  ~RequestStream() override;

  [[nodiscard]] bool has_strided() const override { return false; }
  pw_nic_status put(RemoteMemory& remote, uint64_t offset, const void* data, Memory* memory, uint64_t bytes,
                    pw_nic_done* done) override;
  pw_nic_status put_word(RemoteMemory& remote, uint64_t offset, const void* data, Memory* memory,
                         uint64_t bytes, const Word& word, pw_nic_done* done) override;
  pw_nic_status word(const Word& word) override;
  pw_nic_status flush(pw_nic_done* done) override;

 private:
  static constexpr uint64_t kFlushes = 64;

  /// A request: its put, and the operation that waits for the answer.
  struct PutRequest : Outstanding<RequestStream> {
    pw_nic_done* waiter = nullptr;
    pw_nic_status answer = PW_NIC_OK;
    bool answered = false;
  };
  struct Flush {
    pw_nic_done* done;
    uint64_t after;  ///< number of requests that must be answered first
  };
  struct OutstandingRequests {
    std::array<PutRequest, kSlots> request;
    Outstanding<RequestStream> heartbeat;  ///< a get now and then, which fails when the peer is gone
  };

  unsigned advance(bool& unfinished) override;
  void forget(const RemoteMemory& remote) override;
  pw_nic_status greet();
  pw_nic_status request_store(const Word& word);
  pw_nic_status send_request(const NicMessage& message, pw_nic_done* waiter);
  [[nodiscard]] bool has_room(uint64_t requests) const { return requested_ + requests - ended_ <= kSlots; }
  PutRequest& request(uint64_t number) { return outstanding_->request[number % kSlots]; }
  void put_done(PutRequest& request, pw_nic_status status);
  void heartbeat_done(Outstanding<RequestStream>& heartbeat, pw_nic_status status);
  void look_for_answers();
  unsigned end_requests();
  unsigned end_flushes();
  void send_heartbeat();

  Box& box_;           ///< this end's box for that peer
  uint64_t peer_box_;  ///< offset of this end's box in the peer's control memory
  const uint32_t first_;
  bool announced_ = false;  ///< whether the marker was put
  Word word_{};  ///< a word that could not be requested yet for lack of room, after its put was requested
  uint64_t requested_ = 0;
  uint64_t ended_ = 0;  ///< number of leading requests that were answered
  uint64_t flushed_ = 0, flushes_ended_ = 0;
  std::array<Flush, kFlushes> flushes_{};
  pw_nic_status refused_ = PW_NIC_OK;  ///< the status of a refused request that no flush has reported yet
  uint64_t next_heartbeat_ns_ = 0;
  std::shared_ptr<OutstandingRequests> outstanding_;
};

}  // namespace pw::nic
