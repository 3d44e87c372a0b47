// All that the program needs of a network: messages that arrive in memory which their receiver has chosen. It
// is implemented with Peerway's puts with signals (comm_peerway.cpp) and with MPI (comm_mpi.cpp).
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
  pivot,  // senders on these three need not wait: their protocols reuse memory only after the peer has
          // answered
  swap,
  solve,
  prepared,  // also panels: a queue of the device starts them. Senders wait as on `panel`
};
inline constexpr int kHostChannels = 4;  // the other channels, whose messages the host starts
/// Whether the CPU makes and reads the channel's messages. Messages of the other channels lie in the device's
/// memory.
constexpr bool of_cpu(Channel channel) { return channel == Channel::pivot || channel == Channel::solve; }

/// The memory that messages are sent from and to.
struct Pool {
  char* memory;
  size_t bytes;
};

/// Consecutive slots of equal size in the device's pool.
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
  /// Whether messages can be sent from and to a GPU's memory.
  [[nodiscard]] virtual bool takes_device_memory() const { return true; }
  virtual void barrier() = 0;
  /// Collective: every rank gives the same number of bytes; all ranks get the data of all, in rank order.
  virtual void all_gather(const void* mine, size_t bytes, void* all) = 0;

  /// Collective: sets the memory for messages, whose layout is the same at all ranks; `cpu` is for the
  /// channels that of_cpu() names. All offsets below are in bytes from the pool's begin. A later call
  /// replaces an earlier one.
  virtual void use(Pool device, Pool cpu) = 0;

  /// After use(): returns the address at which kernels of this rank's GPU reach an offset in another rank's
  /// device pool. Null if they cannot reach it; `why_not` then says why.
  virtual char* reach(int /*rank*/, size_t /*offset*/, std::string& why_not) {
    why_not = "kernels reach no other rank's memory by " + name();
    return nullptr;
  }

  /// Allows the next message of `from` on the channel to arrive in this place.
  virtual void expect(int from, Channel channel, size_t offset, size_t bytes) = 0;
  /// Whether a send on a channel on which senders wait would not have to wait now.
  virtual bool expected_by(int to, Channel channel) = 0;
  /// Starts a message. The memory that it reads must not change before settle() of its channel has returned.
  virtual void send(int to, Channel channel, size_t offset, size_t to_offset, size_t bytes) = 0;
  virtual void settle(Channel channel) = 0;
  /// Whether the next expected message that was not received yet has arrived.
  virtual bool arrived(int from, Channel channel) = 0;
  virtual void receive(int from, Channel channel) = 0;

  /// Collective, after use(): prepares what send_behind() starts, for the ranks of `group`; all of them pass
  /// the same group. Returns false if the network does not support it.
  virtual bool prepare(const std::vector<int>& /*group*/, const Slots&) { return false; }
  /// Sends a message on the channel `prepared`, from the beginning of a slot to the same slot there. It
  /// starts once the present work in `queue` is done, and the host does not wait for that. A null queue
  /// stands for the host's work, which is done.
  virtual void send_behind(void* /*queue*/, int /*to*/, size_t /*offset*/, size_t /*bytes*/) {
    throw std::logic_error("hpl: nothing is prepared.");
  }
};

/// `name` is "peerway", "mpi", or "self" for one rank that needs no network.
std::unique_ptr<Comm> make_comm(const std::string& name, double timeout_s);

}  // namespace hpl

/// The function that comm_peerway.so and comm_mpi.so export.
extern "C" hpl::Comm* hpl_make_comm(double timeout_s);

#endif
