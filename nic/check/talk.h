// Messages between the processes of the conformance tests, over sockets: the near end sends commands, a far
// end answers, and the near end reports its findings to the supervisor.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "nic/check/check.h"
#include "peerway/nic.h"

namespace pw::nic::check {

enum class CommandKind : uint8_t {
  open,     ///< open an endpoint -> its address, and its number as value
  memory,   ///< register the arena anew -> key
  huge,     ///< also register the arena of more than 4 GiB -> key
  forget,   ///< deregister the arena, then fill it with the byte `value`
  counts,   ///< -> descriptors, threads
  traffic,  ///< take part in traffic -> its findings
  close,
};

struct Command {
  CommandKind kind = CommandKind::open;
  uint64_t value = 0;
  Bytes bytes;
};

struct Reply {
  pw_nic_status status = PW_NIC_OK;
  uint64_t value = 0;
  std::string why;
  Bytes bytes;
};

/// From the near end to the supervisor: a test has begun or ended.
struct TestReport {
  uint32_t test =
      0;  ///< its place in the list; kSetup, kClosing; or kNoPlugin, where there is nothing to test
  bool ended = false;
  Outcome outcome = Outcome::ok;
  std::string evidence;
};
inline constexpr uint32_t kSetup = UINT32_MAX, kNoPlugin = UINT32_MAX - 1, kClosing = UINT32_MAX - 2;

void write(ByteWriter& to, const pw_nic_address& address);
void write(ByteWriter& to, const pw_nic_key& key);
pw_nic_address read_address(ByteReader& from);
pw_nic_key read_key(ByteReader& from);

/// Returns false if the other process is gone.
bool send(int socket, const Command& request);
bool send(int socket, const Reply& reply);
bool send(int socket, const TestReport& report);
bool receive(int socket, Command& request);
bool receive(int socket, Reply& reply);
bool receive(int socket, TestReport& report);

}  // namespace pw::nic::check
