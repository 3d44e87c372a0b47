// A transport of the tests: letters over datagram sockets of this host. The target's progress stores what is
// put and answers with what is got. Nothing in Peerway knows of it but one line of the list (transports.cpp).
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <string>

#include "base/descriptor.h"
#include "base/format.h"
#include "base/status.h"
#include "transport/blocks.h"
#include "transport/transport.h"

namespace pw {
namespace {

constexpr uint64_t kMostBytes = 32768;  // of one letter

enum class Kind : uint8_t { put, get, answer };

struct Header {
  Secret secret;  ///< that only the job knows
  Kind kind;
  int32_t rank;  ///< whose letter it is
  uint32_t slot;
  uint64_t generation, offset, bytes;
  uint64_t number;   ///< of the question
  pw_status status;  ///< of an answer
};

using Letter = std::vector<std::byte>;

struct Get {
  std::shared_ptr<Region> region;
  std::byte* to;
  uint64_t bytes;
};

struct Line {
  Descriptor socket{
      ::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};  ///< with room of its own
  std::deque<Letter> out;
  uint64_t begun = 0, answered = 0;  ///< letters; answers come in their order
  std::map<uint64_t, Get> gets;      ///< by number
  pw_status failed = PW_OK;
};

class LetterTransport final : public Transport, public Source {
 public:
  explicit LetterTransport(const Surroundings& surroundings) : with_(surroundings) {}
  std::vector<std::unique_ptr<Path>> paths() override;
  Bytes open(const TransportAssumptions&) override;
  void receive_facts(const std::vector<Bytes>& ranks) override { names_ = ranks; }

  pw_status ask(const Transfer& transfer);
  Mark mark(int rank);
  bool reached(int rank, Mark mark);
  pw_status outcome(int rank, Mark mark);

  bool poll() override;
  Armed arm(bool sleepers) override;

 private:
  void enqueue(int rank, Header header, const std::byte* data, uint64_t bytes);
  bool send_all();
  void take(const Header& header, const std::byte* data, uint64_t bytes);
  void serve(const Header& header, const std::byte* data, uint64_t bytes);
  const Surroundings with_;
  const Secret secret_ = with_.team.secret_for("letters");
  Descriptor socket_;
  Bytes own_;                 ///< the name of this rank's socket
  std::vector<Bytes> names_;  ///< of all ranks' sockets
  std::mutex mutex_;
  std::map<int, Line> lines_;
};

class LetterPath final : public Path {
 public:
  explicit LetterPath(LetterTransport& letters) : Path(Completes::later), letters_(letters) {}
  [[nodiscard]] std::string_view name() const override { return "letters"; }
  [[nodiscard]] Offer offer(const Pair& pair, Region&, Remote&) override {
    if (!pair.same_host) return Offer::unsuited("letters go no further than this host");
    if (pair.local.kind != PW_HOST || pair.remote.kind != PW_HOST)
      return Offer::unsuited("letters carry memory of the host only");
    return Offer::yes();
  }
  pw_status start(const Transfer& transfer) override { return letters_.ask(transfer); }
  Mark mark(int rank) override { return letters_.mark(rank); }
  bool reached(int rank, Mark mark) override { return letters_.reached(rank, mark); }
  pw_status outcome(int rank, Mark mark) override { return letters_.outcome(rank, mark); }
  [[nodiscard]] Source* source() override { return &letters_; }

 private:
  LetterTransport& letters_;
};

std::vector<std::unique_ptr<Path>> LetterTransport::paths() {
  std::vector<std::unique_ptr<Path>> paths;
  paths.push_back(std::make_unique<LetterPath>(*this));
  return paths;
}

Bytes LetterTransport::open(const TransportAssumptions&) {
  if (!own_.empty()) return own_;  // called again
  socket_ = Descriptor(::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  sockaddr_un own{.sun_family = AF_UNIX, .sun_path = {}};
  if (socket_.get() < 0 || bind(socket_.get(), reinterpret_cast<sockaddr*>(&own), sizeof(sa_family_t)) != 0)
    throw Error(PW_SYSTEM, "a socket for letters" + errno_text(errno));
  socklen_t length = sizeof own;  // chosen by the kernel
  getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&own), &length);
  with_.progress.add(*this);
  const auto* bytes = reinterpret_cast<const std::byte*>(&own);
  return own_ = {bytes, bytes + length};
}

pw_status LetterTransport::ask(const Transfer& transfer) {
  const Key& key = transfer.remote->key;
  const bool put = transfer.op == Op::put;
  std::byte* here = transfer.local->address() + transfer.local_offset;
  const std::lock_guard lock(mutex_);
  Line& line = lines_[key.rank];
  const uint64_t block = transfer.layout.shape.block_bytes;
  BlockCursor blocks(transfer.layout);
  for (uint64_t to = 0, from = 0; blocks.next(to, from);)
    for (uint64_t at = 0; at < block; at += kMostBytes) {
      const uint64_t bytes = std::min(block - at, kMostBytes);
      std::byte* local = here + (put ? from : to) + at;
      const uint64_t offset = transfer.remote_offset + (put ? to : from) + at;
      const uint64_t number = ++line.begun;
      if (!put) line.gets[number] = {transfer.local->shared_from_this(), local, bytes};
      enqueue(key.rank,
              {secret_, put ? Kind::put : Kind::get, with_.team.rank(), key.slot, key.generation, offset,
               bytes, number, PW_OK},
              local, put ? bytes : 0);
    }
  send_all();
  with_.progress.wake_if_asleep();
  return PW_OK;
}

void LetterTransport::enqueue(int rank, Header header, const std::byte* data, uint64_t bytes) {
  Letter letter(sizeof header + bytes);
  std::memcpy(letter.data(), &header, sizeof header);
  if (bytes > 0) std::memcpy(letter.data() + sizeof header, data, bytes);
  lines_[rank].out.push_back(std::move(letter));
}

bool LetterTransport::send_all() {
  bool sent = false;
  for (auto& [rank, line] : lines_)
    while (!line.out.empty()) {
      const Bytes& name = names_[static_cast<size_t>(rank)];
      const Letter& letter = line.out.front();
      if (!with_.team.lost(rank) &&
          sendto(line.socket.get(), letter.data(), letter.size(), MSG_NOSIGNAL,
                 reinterpret_cast<const sockaddr*>(name.data()), static_cast<socklen_t>(name.size())) < 0)
        break;  // no room, or the rank is gone and the team will know
      line.out.pop_front();
      sent = true;
    }
  return sent;
}

bool LetterTransport::poll() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return false;
  bool happened = send_all();
  alignas(Header) std::byte letter[sizeof(Header) + kMostBytes];
  for (ssize_t got; (got = recv(socket_.get(), letter, sizeof letter, 0)) > 0; happened = true) {
    Header header;
    if (static_cast<size_t>(got) < sizeof header) continue;
    std::memcpy(&header, letter, sizeof header);
    if (header.secret != secret_ || header.rank < 0 || header.rank >= with_.team.size()) continue;
    take(header, letter + sizeof header, static_cast<uint64_t>(got) - sizeof header);
  }
  return send_all() || happened;
}

Armed LetterTransport::arm(bool) {
  constexpr uint64_t kNap = 200'000;  // ns: nobody says that a target has room again
  const std::lock_guard lock(mutex_);
  const bool waits = std::ranges::any_of(lines_, [](const auto& line) { return !line.second.out.empty(); });
  return {socket_.get(), waits ? kNap : Armed::kNoLimit};
}

void LetterTransport::take(const Header& header, const std::byte* data, uint64_t bytes) {
  if (header.kind != Kind::answer) return serve(header, data, bytes);
  Line& line = lines_[header.rank];
  if (header.number > line.begun) return;
  if (const auto get = line.gets.find(header.number); get != line.gets.end()) {
    if (header.status == PW_OK && bytes == get->second.bytes && !get->second.region->closed())
      std::memcpy(get->second.to, data, bytes);
    line.gets.erase(get);
  }
  line.answered = header.number;
  if (line.failed == PW_OK) line.failed = header.status;
}

void LetterTransport::serve(const Header& header, const std::byte* data, uint64_t bytes) {
  const bool put = header.kind == Kind::put;
  const auto region = with_.registry.find(header.slot, header.generation);
  Header answer{secret_, Kind::answer, with_.team.rank(), 0, 0, 0, 0, header.number, PW_OK};
  if (region == nullptr)
    answer.status = PW_STALE_KEY;
  else if (header.bytes > kMostBytes || header.offset > region->bytes() ||
           header.bytes > region->bytes() - header.offset || (put && bytes != header.bytes))
    answer.status = PW_OUT_OF_RANGE;
  const bool good = answer.status == PW_OK;
  std::byte* at = good ? region->address() + header.offset : nullptr;
  if (good && put) std::memcpy(at, data, bytes);
  enqueue(header.rank, answer, at, good && !put ? header.bytes : 0);
}

Mark LetterTransport::mark(int rank) {
  const std::lock_guard lock(mutex_);
  return lines_[rank].answered == lines_[rank].begun && lines_[rank].failed == PW_OK ? 0 : lines_[rank].begun;
}

bool LetterTransport::reached(int rank, Mark mark) {
  const std::lock_guard lock(mutex_);
  Line& line = lines_[rank];
  if (line.answered >= mark) return true;
  if (!with_.team.lost(rank) && with_.control.control().closed.load() == 0) return false;
  line.gets.clear();  // whoever sees the failure may free the memory
  return true;
}

pw_status LetterTransport::outcome(int rank, Mark mark) {
  const std::lock_guard lock(mutex_);
  Line& line = lines_[rank];
  if (with_.team.lost(rank)) return fail(PW_PEER_LOST, with_.team.describe_loss(rank));
  if (line.answered < mark) return fail(PW_CLOSED, "this context was closed");
  const pw_status failed = std::exchange(line.failed, PW_OK);
  if (failed == PW_OK) return PW_OK;
  return fail(failed, format("rank {} refused a letter: {}", rank, pw_status_name(failed)));
}

}  // namespace

std::unique_ptr<Transport> make_letters(const Surroundings& surroundings) {
  return std::make_unique<LetterTransport>(surroundings);
}

}  // namespace pw
