#include "team/agreement.h"

#include <algorithm>
#include <new>
#include <string_view>

#include "base/config.h"
#include "base/format.h"

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

Error objection_of(const Error& own, int rank, const char* do_what) {
  return {own.status(), format("rank {} cannot {}: {}", rank, do_what,
                               std::string_view(own.what()).substr(0, kLongestMessage - 128))};
}

void end_meeting(Meeting& meeting, const Error& own, int rank, const char* do_what) {
  meeting.object(objection_of(own, rank, do_what));
  throw Error(own);
}

ByteView letter_of(const Letters& letters, int rank) {
  const auto found = std::ranges::find(letters, rank, &Letters::value_type::first);
  return found == letters.end() ? ByteView() : ByteView(found->second);
}

Bytes pack_part(const Objection& objection, ByteView mine) {
  ByteWriter to;
  to.put(static_cast<int32_t>(objection ? objection->status() : PW_OK));
  if (objection)
    to.put_text(std::string_view(objection->what()).substr(0, kLongestMessage));
  else
    to.put(mine);
  return to.take();
}

std::vector<Bytes> open_parts(const std::vector<Bytes>& parts, const Objection& objection,
                              const char* do_what) {
  if (objection) throw Error(*objection);
  std::vector<Bytes> told;
  for (const Bytes& part : parts) {
    ByteReader from(part, "a rank's part of an agreement");
    if (const auto status = static_cast<pw_status>(from.get<int32_t>()); status != PW_OK)
      throw Error(status,
                  format("rank {} cannot {}: {}", told.size(), do_what, from.get_text(kLongestMessage)));
    const ByteView rest = from.rest();
    told.emplace_back(rest.begin(), rest.end());
  }
  return told;
}

std::vector<Bytes> agree(Team& team, const Objection& objection, ByteView mine) {
  constexpr auto kind = Collective::context;
  return open_parts(team.all_gather_parts(kind, pack_part(objection, mine), config_number("timeout")),
                    objection, action_of(kind));
}

}  // namespace pw
