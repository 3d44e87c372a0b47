// The C functions of teams. Each checks its pointers and turns exceptions into a status.
#include <cstring>

#include "base/format.h"
#include "base/setting.h"
#include "base/status.h"
#include "peerway/peerway.h"
#include "team/handle.h"
#include "trace/call.h"

pw_status pw_team_from_launcher(pw_team** team) {
  return pw::catch_errors(__func__, pw::given(team), [&] {
    pw::check_settings();
    pw::trace::begin();
    *team = new pw_team{pw::team_from_launcher()};
    pw::trace::is_rank((*team)->team->rank());
    return PW_OK;
  });
}

pw_status pw_team_create(int rank, int size, pw_broadcast broadcast, void* user, pw_team** team) {
  return pw::catch_errors(__func__, pw::given(team) && (pw::given(broadcast) || size == 1), [&] {
    pw::trace::begin();
    *team = new pw_team{pw::make_team(rank, size, [&](std::span<std::byte> data) {
      if (const int code = broadcast(user, data.data(), data.size()))
        throw pw::Error(PW_SYSTEM, pw::format("pw_team_create: the broadcast function returned {}", code));
    })};
    pw::trace::is_rank(rank);
    return PW_OK;
  });
}

int pw_team_rank(const pw_team* team) { return team ? team->team->rank() : -1; }
int pw_team_size(const pw_team* team) { return team ? team->team->size() : -1; }

pw_status pw_team_all_gather(pw_team* team, void* all, const void* mine, size_t bytes, uint64_t timeout_ns) {
  const pw::trace::Call call(__builtin_return_address(0));
  return pw::catch_errors(__func__, pw::given(team) && (bytes == 0 || pw::given(all, mine)), [&] {
    const auto result = team->team->all_gather({static_cast<const std::byte*>(mine), bytes}, timeout_ns);
    if (bytes) std::memcpy(all, result.data(), result.size());
    return PW_OK;
  });
}

pw_status pw_team_all_gather_parts(pw_team* team, const void* mine, size_t bytes, pw_take_part take,
                                   void* user, uint64_t timeout_ns) {
  const pw::trace::Call call(__builtin_return_address(0));
  return pw::catch_errors(__func__, pw::given(team, take) && (bytes == 0 || pw::given(mine)), [&] {
    const auto parts = team->team->all_gather_parts(pw::CallKind::parts,
                                                    {static_cast<const std::byte*>(mine), bytes}, timeout_ns);
    for (size_t rank = 0; rank < parts.size(); ++rank)
      take(user, static_cast<int>(rank), parts[rank].data(), parts[rank].size());
    return PW_OK;
  });
}

pw_status pw_team_barrier(pw_team* team, uint64_t timeout_ns) {
  const pw::trace::Call call(__builtin_return_address(0));
  return pw_team_all_gather(team, nullptr, nullptr, 0, timeout_ns);
}

pw_status pw_team_lost(const pw_team* team, int rank, int* lost) {
  return pw::catch_errors(__func__, pw::given(team, lost), [&] {
    if (rank < 0 || rank >= team->team->size())
      return pw::fail(PW_OUT_OF_RANGE,
                      pw::format("pw_team_lost: asked for rank {}; this team has ranks 0 to {}", rank,
                                 team->team->size() - 1));
    *lost = team->team->lost(rank) ? 1 : 0;
    return PW_OK;
  });
}

pw_status pw_team_free(pw_team* team) {
  pw::release(team);
  return PW_OK;
}
