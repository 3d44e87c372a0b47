#include "team/agreement.h"

#include <algorithm>
#include <new>
#include <string_view>

#include "base/format.h"
#include "base/timeout.h"

namespace pw {
namespace {

constexpr size_t kLongestMessage = 4096;

}  // namespace

Error error_of(const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const Error& error) {
    return error;
  } catch (const std::bad_alloc&) {
    return {PW_NO_MEMORY, "no memory is left"};
  } catch (const std::exception& error) {
    return {PW_INTERNAL, error.what()};
  } catch (...) {
    return {PW_INTERNAL, "an exception that is not a std::exception"};
  }
}

Error abort_reason_for(const Error& own, int rank, const char* do_what) {
  return {own.status(), format("rank {} cannot {}: {}", rank, do_what,
                               std::string_view(own.what()).substr(0, kLongestMessage - 128))};
}

void abort_exchange(Exchange& exchange, const Error& own, int rank, const char* do_what) {
  exchange.abort(abort_reason_for(own, rank, do_what));
  throw Error(own);
}

void check_group(const Team& team, std::span<const int> ranks, const char* action) {
  const auto refuse = [&](const std::string& problem) {
    throw Error(PW_INVALID_ARGUMENT, format("{} among {} ranks {}", action, ranks.size(), problem));
  };
  if (std::ranges::find(ranks, team.rank()) == ranks.end())
    refuse(format("without rank {}, which prepares it", team.rank()));
  for (const int rank : ranks) {
    if (rank < 0 || rank >= team.size())
      refuse(format("with rank {}; the team has ranks 0 to {}", rank, team.size() - 1));
    if (std::ranges::count(ranks, rank) > 1) refuse(format("with rank {} twice", rank));
  }
}

ByteView message_of(const PeerMessages& messages, int rank) {
  const auto position = std::ranges::find(messages, rank, &PeerMessages::value_type::first);
  return position == messages.end() ? ByteView() : ByteView(position->second);
}

Bytes pack_part(const AbortReason& abort_reason, ByteView mine) {
  ByteWriter to;
  to.put(static_cast<int32_t>(abort_reason ? abort_reason->status() : PW_OK));
  if (abort_reason)
    to.put_text(std::string_view(abort_reason->what()).substr(0, kLongestMessage));
  else
    to.put(mine);
  return to.take();
}

std::vector<Bytes> open_parts(const std::vector<Bytes>& parts, const AbortReason& abort_reason,
                              const char* do_what) {
  if (abort_reason) throw Error(*abort_reason);
  std::vector<Bytes> parts_of_ranks;
  for (const Bytes& part : parts) {
    ByteReader from(part, "a rank's part of an agreement");
    if (const auto status = static_cast<pw_status>(from.get<int32_t>()); status != PW_OK)
      throw Error(status, format("rank {} cannot {}: {}", parts_of_ranks.size(), do_what,
                                 from.get_text(kLongestMessage)));
    const ByteView rest = from.rest();
    parts_of_ranks.emplace_back(rest.begin(), rest.end());
  }
  return parts_of_ranks;
}

std::vector<Bytes> agree(Team& team, const AbortReason& abort_reason, ByteView mine) {
  constexpr auto kind = CallKind::context;
  return open_parts(
      team.all_gather_parts(kind, pack_part(abort_reason, mine), settings::timeout.nanoseconds()),
      abort_reason, action_of(kind));
}

}  // namespace pw
