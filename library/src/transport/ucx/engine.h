// Drives UCX for one context: a worker, and a connection to each rank that is written to. Without RDMA
// hardware UCX needs the target's CPU for every put and get, so some thread must poll it at all times. All
// calls of UCX are made under one lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "base/bytes.h"
#include "progress/mark.h"
#include "progress/progress.h"
#include "transport/path.h"
#include "transport/ucx/library.h"
#include "transport/ucx/message.h"

namespace pw::ucx {

class UcxEngine;

/// An object that operations under way use. It may be returned to UCX only when they are done.
class Used {
 public:
  Used() = default;
  Used(const Used&) = delete;

 private:
  friend class UcxEngine;
  uint64_t operations_ = 0;  ///< number of operations that use it; under the engine's lock
};

/// Memory of this rank, registered with UCX. It is shared, and attached to its region.
class UcxMemory : public Used {
 public:
  /// `host`: it is host memory. Throws Error.
  UcxMemory(std::shared_ptr<UcxEngine> engine, const void* address, uint64_t bytes, bool host = true);
  ~UcxMemory();
  [[nodiscard]] const Bytes& key() const { return key_; }  ///< what peers need to reach it

 private:
  friend class UcxEngine;
  std::shared_ptr<UcxEngine> engine_;
  const uint64_t address_, bytes_;
  const bool host_;
  uint64_t number_ = 0;  ///< names it in messages
  ucp_abi::ucp_mem_h handle_ = nullptr;
  Bytes key_;
};

/// A key of a peer, imported for the connection to that peer. Attached to a remote.
class UcxRemoteMemory : public Used {
 public:
  UcxRemoteMemory(std::shared_ptr<UcxEngine> engine, int rank, ByteView key);  ///< Throws Error
  ~UcxRemoteMemory();

 private:
  friend class UcxEngine;
  std::shared_ptr<UcxEngine> engine_;
  uint64_t number_ = 0;  ///< names the UcxMemory at the peer
  ucp_abi::ucp_rkey_h handle_ = nullptr;
};

/// One contiguous put or get.
struct Piece {
  Op op;
  void* local;
  uint64_t remote;  ///< address in the peer
  uint64_t bytes;
};

inline constexpr unsigned kOperations = 1;  ///< id of the messages of message.h; notes have id 0

class UcxEngine final : public Source, public std::enable_shared_from_this<UcxEngine> {
 public:
  /// Waits end with PW_CLOSED once `closed` is set. Throws Error.
  UcxEngine(const Library& library, Team& team, const std::atomic<uint32_t>& closed, Progress& progress);
  ~UcxEngine() override;
  UcxEngine(const UcxEngine&) = delete;

  [[nodiscard]] const Library& library() const { return library_; }
  [[nodiscard]] const Bytes& address() const { return address_; }  ///< for the peers
  /// The kinds of device whose memory UCX can access: a bit for each pw_device_kind.
  [[nodiscard]] uint32_t memory_kinds() const { return memory_kinds_; }
  void set_addresses(std::function<Bytes(int rank)> address_of);  ///< before the first operation

  /// Starts the pieces that `next` yields, until it returns false. Only a few are under way at a time; the
  /// rest start as those end. `host`: the local memory is host memory.
  pw_status move(int rank, UcxMemory& local, UcxRemoteMemory& remote, bool host,
                 std::function<bool(Piece&)> next);

  /// Puts one word after everything that was started towards the rank before is complete there. Returns at
  /// once. (UCX has a fence, but since version 1.22 its call waits for the peer, without a limit.)
  pw_status put_word(int rank, UcxRemoteMemory& remote, uint64_t address, uint64_t value);

  /// Starts to read one word, which has arrived once a mark is reached. Throws Error.
  std::shared_ptr<const uint64_t> get_word(int rank, UcxRemoteMemory& remote, uint64_t address);

  /// Waits until `done()` returns true and polls UCX meanwhile (wait.h).
  template <typename Done>
  pw_status wait_for(int rank, uint64_t deadline_ns, const char* awaited, Done&& done);

  /// Whether operations with the rank are sent as messages (message.h), which need host memory at both ends.
  /// Throws Error.
  bool by_messages(int rank);

  /// Whether the connection to the rank broke; failure() returns how.
  bool failed(int rank);
  pw_status failure(int rank);

  /// Sends a short message to the peer's receiver. Messages may overtake one another, and puts.
  pw_status send(int rank, Bytes message);
  /// Passes the messages of peers to `receiver` from now on, on any thread. `receiver` must be quick and must
  /// not call UCX.
  void receive(std::function<void(ByteView)> receiver);

  /// Like those of a Path.
  Mark mark(int rank);
  bool reached(int rank, Mark mark);
  pw_status outcome(int rank, Mark mark);

  /// Whether nothing more can arrive from the rank: it was lost, the connection broke, or the context is
  /// closed. why_over() returns which, as a failure.
  bool over(int rank);
  pw_status why_over(int rank);

  /// Keeps memory that peers knew of mapped as long as UCX runs. Without RDMA hardware, UCX itself stores
  /// what is put, and puts of a peer that did not know of the close yet still arrive.
  void keep(std::shared_ptr<void> memory);

  /// Tells the progress thread that it will move this device's memory on behalf of peers.
  void serve(Device& device) { progress_.serve(device); }

  bool poll() override;
  Armed arm(bool sleepers) override;

 private:
  friend class UcxMemory;
  friend class UcxRemoteMemory;
  struct UcxPeer;
  struct UcxOperation;
  struct NumberedMessages;
  using Lock = std::unique_lock<std::mutex>;

  void open();
  bool reaches_memory(ucp_abi::ucp_ep_h endpoint) const;
  void poll_errors(const UcxPeer& peer);
  unsigned advance();  ///< one round of UCX's progress; also closes broken connections
  void close_broken();
  UcxPeer& peer_of(int rank);
  UcxPeer& connect(int rank);           ///< throws Error
  pw_status failure_of(UcxPeer& peer);  ///< PW_OK while the connection works
  void send_words(UcxPeer& peer);       ///< sends the words that need not wait any longer
  UcxOperation* take_operation(UcxPeer& peer, Used* local, Used* remote);
  /// Counts one of the completions that the operation waits for; after the last one the operation is over.
  void count_completion(UcxOperation* operation, ucp_abi::ucs_status_t status);
  pw_status started(ucp_abi::ucs_status_ptr_t answer, UcxOperation* operation);
  template <typename GoOn>
  pw_status in_order(UcxPeer& peer, std::initializer_list<const void*> uses, GoOn&& go_on);
  void resume_all();  ///< continues the operations that wait for room
  pw_status start_piece(UcxPeer& peer, UcxMemory& local, UcxRemoteMemory& remote, bool host,
                        const Piece& piece);
  pw_status start_word(UcxPeer& peer, UcxRemoteMemory& remote, uint64_t address, uint64_t value);
  pw_status start_get(UcxPeer& peer, UcxRemoteMemory& remote, uint64_t address,
                      const std::shared_ptr<uint64_t>& landing);
  void drop(const Used& used);
  void advance_flush(UcxPeer& peer);  ///< ends the peer's flush if it is over, and starts one if it is due
  void advance_flushes();
  bool settle(Lock& lock, Used& used);  ///< returns false if operations still use it after a while
  pw_status failure_since_flush(UcxPeer& peer, ucp_abi::ucs_status_t flushed);
  void forget(const Used& used);  ///< makes operations under way forget the object
  pw_status move_by_messages(UcxPeer& peer, UcxMemory& local, UcxRemoteMemory& remote, Piece piece);
  /// Sends a message that the peer must answer; gives it the next number of the queue.
  pw_status send_numbered(UcxPeer& peer, NumberedMessages& queue, UcxOperation* operation,
                          const MessageHeader& header, const void* data, uint64_t bytes);
  pw_status send_message(UcxPeer& peer, UcxOperation* operation, const void* data, uint64_t bytes);
  ucp_abi::ucs_status_t let_ucx_copy();
  // For messages of peers:
  void handle_message(const MessageHeader& header, ByteView data);
  pw_status store_message(const MessageHeader& header, ByteView data);
  UcxMemory* find(const MessageHeader& header, uint64_t bytes, pw_status& why_not);
  void done_up_to(NumberedMessages& queue, uint64_t number);  ///< the peer has answered these messages
  void take_data(UcxPeer& peer, const MessageHeader& header, ByteView data);
  void answer(UcxPeer& peer);
  void answer_get(UcxPeer& peer, const MessageHeader& get);
  void give_up_answers(UcxPeer& peer);
  ucp_abi::ucp_request_param_t parameters(UcxOperation* operation) const;
  static void on_completion(void* request, ucp_abi::ucs_status_t status, void* operation);
  static void on_word_ready(void* request, ucp_abi::ucs_status_t status, void* operation);
  static void on_flushed(void* request, ucp_abi::ucs_status_t status, void* peer);
  static ucp_abi::ucs_status_t on_message(void* engine, const void* header, size_t header_length, void* data,
                                          size_t length, const ucp_abi::ucp_am_recv_param_t* param);
  static ucp_abi::ucs_status_t on_part(void* engine, const void* header, size_t header_length, void* data,
                                       size_t length, const ucp_abi::ucp_am_recv_param_t* param);
  static void on_error(void* peer, ucp_abi::ucp_ep_h endpoint, ucp_abi::ucs_status_t status);

  const Library& library_;
  Team& team_;
  const std::atomic<uint32_t>& closed_;
  Progress& progress_;
  Bytes address_;
  uint32_t memory_kinds_ = 0;
  std::function<Bytes(int rank)> address_of_;

  std::mutex mutex_;  ///< protects the members below and every call of UCX
  ucp_abi::ucp_context_h context_ = nullptr;
  ucp_abi::ucp_worker_h worker_ = nullptr;
  uint64_t copied_ = 0;  ///< a datatype that describes the bytes of a UcxOperation; 0: not used
  std::vector<std::unique_ptr<UcxPeer>> peers_;            ///< indexed by rank; null before the first use
  std::vector<UcxPeer*> awaiting_flush_;                   ///< peers that have a mark to reach by a flush
  std::vector<UcxPeer*> backlogged_;                       ///< peers with a backlog
  std::vector<std::unique_ptr<UcxOperation>> operations_;  ///< all that were ever needed at a time
  std::vector<UcxOperation*> free_operations_;             ///< those that are not under way
  std::function<void(ByteView)> receiver_;
  std::unordered_map<uint64_t, UcxMemory*> memories_;  ///< memory that messages may access, by number
  uint64_t numbered_ = 0;                              ///< the last number given to such memory
  bool answers_due_ = false;                           ///< some peer waits for an answer
  bool words_ready_ = false;                           ///< some peer has words to send
  bool broken_ = false;                                ///< some connection broke and must be closed
  std::vector<ucp_abi::ucp_mem_h> abandoned_;  ///< registrations that were still in use and could not be
                                               ///< undone
  std::vector<std::shared_ptr<void>> kept_;    ///< no longer used here, but peers may still put into it

  std::atomic<bool> lost_{false};  ///< some rank was lost; find out which
  std::atomic<int> failures_{0};   ///< number of connections that broke
  int event_ = -1;                 ///< UCX's event descriptor
  std::shared_ptr<void> losses_;   ///< last, so that no callback comes during destruction
};

}  // namespace pw::ucx
