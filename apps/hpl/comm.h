// All that the program needs of a network: messages that arrive where their receiver has room for them.
// Peerway's puts with signals (comm_peerway.cpp) and MPI (comm_mpi.cpp) are behind it.
#ifndef HPL_COMM_H
#define HPL_COMM_H

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace hpl {

/// Messages between two ranks on one channel arrive in order.
enum class Channel {
  panel,  // a sender waits until its receiver expects the message
  pivot,  // these three do not: their protocols reuse no room before the peer has answered
  swap,
  solve,
  prepared,  // of panels, too: a queue of the device starts them. Rooms are as on `panel`
};
inline constexpr int kHostChannels = 4;  // the others, which the host starts
/// Whether its messages are made and read by the CPU. Those of the others lie in the device's memory.
constexpr bool of_cpu(Channel channel) { return channel == Channel::pivot || channel == Channel::solve; }

/// The memory that messages go from and to.
struct Pool {
  char* memory;
  size_t bytes;
};

/// Places of equal size in the device's pool, one behind the other.
struct Slots {
  size_t first, bytes;
  int count;
};

class Comm {
 public:
  virtual ~Comm() = default;
  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;
  [[nodiscard]] virtual std::string name() const = 0;
  /// Whether messages can go from and to a GPU's memory.
  [[nodiscard]] virtual bool takes_device_memory() const { return true; }
  virtual void barrier() = 0;
  /// Collective: every rank gives as many bytes; all get those of all, in rank order.
  virtual void all_gather(const void* mine, size_t bytes, void* all) = 0;

  /// Collective: messages go from and to these, whose layout is the same at all ranks; `cpu` is for the
  /// channels that of_cpu() names. All offsets below are in bytes from there. Called once more, it replaces
  /// the last.
  virtual void use(Pool device, Pool cpu) = 0;

  /// After use(): where kernels of this rank's GPU find an offset of another rank's device pool. Null where
  /// they cannot reach it, and why not.
  virtual char* reach(int /*rank*/, size_t /*offset*/, std::string& why_not) {
    why_not = "kernels reach no other rank's memory by " + name();
    return nullptr;
  }

  /// The next message of `from` on the channel may come to this place.
  virtual void expect(int from, Channel channel, size_t offset, size_t bytes) = 0;
  /// Whether a send on the channel `panel` would not wait.
  virtual bool expected_by(int to, Channel channel) = 0;
  /// Starts a message. What it reads must not change before settle() of its channel has returned.
  virtual void send(int to, Channel channel, size_t offset, size_t to_offset, size_t bytes) = 0;
  virtual void settle(Channel channel) = 0;
  /// Whether the next message that was expected, and not received, is there.
  virtual bool arrived(int from, Channel channel) = 0;
  virtual void receive(int from, Channel channel) = 0;

  /// Collective, after use(): makes ready what send_behind() starts among the ranks of `group`, which all of
  /// them give alike. False where the network cannot do that.
  virtual bool prepare(const std::vector<int>& /*group*/, const Slots&) { return false; }
  /// A message on the channel `prepared`, from the beginning of a slot to the same slot there: it goes when
  /// all that the queue has now is done, and the host does not wait for that. Null: the host's work, which is
  /// done.
  virtual void send_behind(void* /*queue*/, int /*to*/, size_t /*offset*/, size_t /*bytes*/) {
    throw std::logic_error("hpl: nothing is prepared.");
  }
};

/// "peerway", "mpi", or "self" for one rank that needs no network.
std::unique_ptr<Comm> make_comm(const std::string& name, double timeout_s);

}  // namespace hpl

/// What comm_peerway.so and comm_mpi.so export.
extern "C" hpl::Comm* hpl_make_comm(double timeout_s);

#endif
