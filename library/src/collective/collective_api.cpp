// The C function of collectives. A collective is a plan of sends, receives and reductions.
#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/format.h"
#include "base/host_id.h"
#include "base/status.h"
#include "base/timeout.h"
#include "collective/choice.h"
#include "collective/exchange.h"
#include "collective/request.h"
#include "collective/schedule.h"
#include "context/context.h"
#include "context/handle.h"
#include "memory/described.h"
#include "plan/handle.h"
#include "plan/negotiation/methods.h"
#include "plan/plan.h"
#include "team/agreement.h"
#include "trace/call.h"

namespace {

namespace collective = pw::collective;
using pw::Error;
using pw::format;
using pw::given;

/// Memory that a program gave to a collective; none if it gave no region.
struct GivenMemory {
  std::shared_ptr<pw::Region> region;
  uint64_t offset = 0, bytes = 0;  ///< in the region

  [[nodiscard]] std::byte* address() const {
    return region == nullptr ? nullptr : region->address() + offset;
  }
  [[nodiscard]] bool overlaps(const GivenMemory& other) const {
    return bytes > 0 && other.bytes > 0 && address() < other.address() + other.bytes &&
           other.address() < address() + bytes;
  }
};

/// What the member that decides tells the others.
struct ChosenMethod {
  collective::CollectiveMethod method = collective::CollectiveMethod::one_shot;
  std::string reason;  ///< for the description of the plan; empty if there is no other method
};

// What a rank tells the others about where it is.
struct Whereabouts {
  uint64_t host_id = 0;
  std::vector<uint32_t> coordinates;  ///< in the network's topology; none if it has none

  void write(pw::ByteWriter& to) const {
    to.put(host_id);
    to.put(static_cast<uint8_t>(coordinates.size()));
    for (const uint32_t coordinate : coordinates) to.put(coordinate);
  }
  static Whereabouts read(pw::ByteReader& from) {
    Whereabouts read{from.get<uint64_t>(), std::vector<uint32_t>(from.get<uint8_t>())};
    for (uint32_t& coordinate : read.coordinates) coordinate = from.get<uint32_t>();
    return read;
  }
};

// Coordinates are used only if all members have as many of them: their NICs may differ.
collective::Placement placement_of(const std::vector<Whereabouts>& members) {
  std::vector<uint64_t> host_ids;
  for (const Whereabouts& member : members) host_ids.push_back(member.host_id);
  std::vector<std::vector<uint32_t>> coordinates;
  const size_t dimensions = members.front().coordinates.size();
  if (std::ranges::all_of(members, [&](const auto& each) { return each.coordinates.size() == dimensions; }))
    for (size_t dimension = 0; dimension < dimensions; ++dimension) {
      auto& along = coordinates.emplace_back();
      for (const Whereabouts& member : members) along.push_back(member.coordinates[dimension]);
    }
  return {collective::hosts_of(host_ids), coordinates};
}

/// Makes one collective, from the arguments to the prepared plan.
class CollectiveMaker {
 public:
  CollectiveMaker(const std::shared_ptr<pw::Context>& context, const pw_collective& arguments,
                  std::vector<int32_t> group)
      : context_(context), team_(context->team()), given_(arguments), group_(std::move(group)) {}

  /// This rank's part of the exchange. Throws Error.
  void make_in(pw::Exchange& exchange) {
    request_ = collective::request_of(given_, group_);
    member_ = request_.member(team_.rank());
    take_memory();
    if (request_.combines()) device_->load_reduction(request_.element, request_.combine);
    // The number of methods may only depend on what all members know before they talk.
    const bool several = collective::methods_of(request_, {}).size() > 1;
    agree(exchange, several);
    build(several ? agreed_method(exchange) : ChosenMethod{});
    builder_->plan->prepare_in(exchange);
  }
  pw_plan* finish(std::unique_ptr<pw::Exchange> exchange) {
    builder_->plan->keep_exchange(std::move(exchange));
    return builder_->prepared().release();
  }

 private:
  void take_memory();
  GivenMemory memory_of(const pw_region* region, uint64_t offset, uint64_t bytes, const char* name) const;
  void check_overlap();
  void check_alignment(const GivenMemory& memory, const char* name) const;
  void agree(pw::Exchange& exchange, bool choose);
  ChosenMethod agreed_method(pw::Exchange& exchange);
  ChosenMethod choose_method();
  double cost_of_send(bool same_host, uint64_t bytes) const;
  void build(const ChosenMethod& chosen);
  void add(const collective::Schedule& schedule);

  [[nodiscard]] bool decides() const { return member_ == 0; }
  /// What this rank sends to the other members.
  pw::PeerMessages exchange_with_members(pw::Exchange& exchange,
                                         const std::function<pw::Bytes(int)>& write) const;

  std::shared_ptr<pw::Context> context_;
  pw::Team& team_;
  const pw_collective& given_;
  std::vector<int32_t> group_;
  collective::CollectiveRequest request_;
  uint32_t member_ = 0;
  GivenMemory to_, from_;
  bool in_place_ = false;
  pw::Device* device_ = nullptr;
  std::shared_ptr<pw::Region> probe_;                ///< memory like that which will be sent to, for costs
  std::vector<std::shared_ptr<pw::Remote>> probes_;  ///< the other members', at the rank that decides
  std::vector<std::shared_ptr<const pw::route::Route>> near_routes_, far_routes_;  ///< to the probes
  collective::Placement placement_{};
  std::unique_ptr<pw_plan_builder> builder_;
};

GivenMemory CollectiveMaker::memory_of(const pw_region* region, uint64_t offset, uint64_t bytes,
                                       const char* name) const {
  if (bytes == 0) return {};
  if (region == nullptr)
    throw Error(PW_INVALID_ARGUMENT, format("{}: no region for `{}`, but this rank needs {} bytes there",
                                            describe(request_), name, bytes));
  const uint64_t room = region->region->bytes();
  if (offset > room || bytes > room - offset)
    throw Error(PW_OUT_OF_RANGE,
                format("{}: `{}` needs {} bytes from offset {} on, but its region has {} bytes",
                       describe(request_), name, bytes, offset, room));
  return {region->region, offset, bytes};
}

// Checks the memory of this rank, and finds the device.
void CollectiveMaker::take_memory() {
  for (const pw_region* region : {static_cast<const pw_region*>(given_.to), given_.from}) {
    if (region == nullptr || request_.kind == PW_BARRIER) continue;
    pw::Device& here = region->region->device();
    if (device_ != nullptr && device_ != &here)
      throw Error(PW_INVALID_ARGUMENT,
                  format("`to` is memory of {} and `from` is memory of {}; both must be of one device",
                         pw::to_string(device_->id()), pw::to_string(here.id())));
    device_ = &here;
  }
  if (device_ == nullptr) device_ = &context_->device_named(given_.device);
  request_.device_kind = device_->id().kind;
  to_ = memory_of(given_.to, given_.to_offset, to_bytes(request_, member_), "to");
  from_ = memory_of(given_.from, given_.from_offset, from_bytes(request_, member_), "from");
  if (request_.kind != PW_BROADCAST && to_.region != nullptr) require_writable(pw::described(*to_.region));
  check_overlap();
  if (request_.combines() && request_.device_kind != PW_HOST) {
    check_alignment(to_, "to");
    check_alignment(from_, "from");
  }
}

void CollectiveMaker::check_overlap() {
  if (!to_.overlaps(from_)) return;
  const bool part_of_from = request_.kind == PW_REDUCE_SCATTER, part_of_to = request_.kind == PW_ALL_GATHER;
  const uint64_t part = part_of_from || part_of_to ? part_offset(request_, member_) : 0;
  in_place_ = request_.kind != PW_ALL_TO_ALL &&
              to_.address() + (part_of_to ? part : 0) == from_.address() + (part_of_from ? part : 0);
  if (in_place_) return;
  throw Error(PW_INVALID_ARGUMENT,
              format("{}: `to` and `from` overlap; {}", describe(request_),
                     request_.kind == PW_ALL_TO_ALL ? "use memory that does not"
                     : part == 0 && !part_of_from && !part_of_to
                         ? "use memory that does not, or the same"
                         : "use memory that does not, or for the smaller this rank's part of the larger"));
}

void CollectiveMaker::check_alignment(const GivenMemory& memory, const char* name) const {
  const uint64_t unit = collective::bytes_of(request_.element);
  if (reinterpret_cast<uintptr_t>(memory.address()) % unit != 0)
    throw Error(PW_INVALID_ARGUMENT,
                format("{}: `{}` begins at {:#x}; a GPU combines {} only at multiples of {} bytes",
                       describe(request_), name, reinterpret_cast<uintptr_t>(memory.address()),
                       collective::name_of(request_.element), unit));
}

pw::PeerMessages CollectiveMaker::exchange_with_members(pw::Exchange& exchange,
                                                        const std::function<pw::Bytes(int)>& write) const {
  pw::PeerMessages messages;
  for (const int rank : group_)
    if (rank != team_.rank()) messages.emplace_back(rank, write(rank));
  return exchange.exchange(messages, pw::settings::timeout.nanoseconds());
}

// Each member tells all others what it requests and where it is. If a method is to be chosen, the member that
// decides also gets the keys of memory like that which will be sent to.
void CollectiveMaker::agree(pw::Exchange& exchange, bool choose) {
  constexpr uint64_t kProbeBytes = 8;
  if (choose) {
    const pw::DeviceId id = device_->id();
    probe_ = context_->allocate({id.kind, id.index}, kProbeBytes);
  }
  const pw::Bytes request = pack(request_);
  const Whereabouts own{pw::host_id(pw::settings::host_id.text()), context_->coordinates()};
  const auto messages = exchange_with_members(exchange, [&](int rank) {
    pw::ByteWriter to;
    to.put_sized(request);
    own.write(to);
    to.put_sized(choose && rank == group_.front() ? context_->key_of(*probe_) : pw::Bytes());
    return to.take();
  });
  std::vector<Whereabouts> members(group_.size(), own);
  for (const auto& [rank, text] : messages) {
    pw::ByteReader from(text, "what a rank requests of a collective");
    pw::ByteReader theirs(from.take_sized(), "what a rank requests of a collective");
    check_same(team_.rank(), request_, rank, collective::parse_request(theirs));
    members[request_.member(rank)] = Whereabouts::read(from);
    const pw::ByteView key = from.take_sized();
    if (choose && decides()) probes_.push_back(context_->import(key));
  }
  placement_ = placement_of(members);
}

// The first member chooses, so that all do the same, and tells the others.
ChosenMethod CollectiveMaker::agreed_method(pw::Exchange& exchange) {
  if (decides()) {
    ChosenMethod chosen = choose_method();
    static_cast<void>(exchange_with_members(exchange, [&](int) {
      pw::ByteWriter to;
      to.put(static_cast<uint8_t>(chosen.method));
      to.put_text(chosen.reason);
      return to.take();
    }));
    return chosen;
  }
  const auto answers = exchange.exchange({{group_.front(), {}}}, pw::settings::timeout.nanoseconds());
  pw::ByteReader from(pw::message_of(answers, group_.front()), "the method of a collective");
  const auto method = static_cast<collective::CollectiveMethod>(from.get<uint8_t>());
  const auto methods = collective::methods_of(request_, placement_);
  if (std::ranges::find(methods, method) == methods.end())
    throw Error(PW_BAD_KEY, format("rank {} chose method {}, which {} does not have", group_.front(),
                                   static_cast<int>(method), describe(request_)));
  constexpr size_t kMostText = 500;
  return {method, from.get_text(kMostText)};
}

ChosenMethod CollectiveMaker::choose_method() {
  const auto kind = static_cast<uint8_t>(device_->id().kind);
  for (const auto& probe : probes_) {
    const bool reached = context_->reaches(*device_, *probe);
    const pw::LaneReach reach{reached, reached, reached && device_->carries_lines(probe->key.exported)};
    const bool same_host = placement_.hosts[request_.member(probe->rank())] == placement_.hosts[member_];
    (same_host ? near_routes_ : far_routes_)
        .push_back(context_->resolver().route_send(*probe_, *probe, pw::methods_of(kind, reach)));
  }
  const std::vector<collective::CollectiveMethod> methods = collective::methods_of(request_, placement_);
  const std::vector<collective::Estimate> estimates = collective::estimates_of(
      request_, placement_, methods,
      {[this](bool same_host, uint64_t bytes) { return cost_of_send(same_host, bytes); },
       device_->memory_bytes_per_us()});
  const std::string text = collective::text_of(estimates);
  const std::string estimated = text.empty() ? "costs are not known" : format("estimated {}", text);
  const auto set = pw::settings::collective_method.value();
  if (set == pw::settings::MethodSetting::automatic) return {estimates.front().method, estimated};
  const auto wanted = static_cast<collective::CollectiveMethod>(
      static_cast<int>(set) - static_cast<int>(pw::settings::MethodSetting::one_shot));
  if (std::ranges::find(methods, wanted) == methods.end())
    return {estimates.front().method,
            format("there is no {} here, which is set; {}", name_of(wanted), estimated)};
  return {wanted, format("set; {}", estimated)};
}

// The cost to the member that is dearest. Where this member has nobody on its own host, but others may, the
// costs to other hosts stand for both.
double CollectiveMaker::cost_of_send(bool same_host, uint64_t bytes) const {
  const auto& routes =
      (same_host && !near_routes_.empty()) || far_routes_.empty() ? near_routes_ : far_routes_;
  double longest = 0;
  for (const auto& route : routes) longest = std::max(longest, route->cost(bytes));
  return longest;
}

void CollectiveMaker::build(const ChosenMethod& chosen) {
  builder_ = std::make_unique<pw_plan_builder>(context_, *device_);
  pw::PlanOperations& operations = builder_->plan->operations();
  operations.set_title(chosen.reason.empty() ? describe(request_)
                                             : format("{}: {} ({})", describe(request_),
                                                      name_of(chosen.method), chosen.reason));
  operations.expect_common_start();
  // A rank that others wait for may itself wait for one that is lost.
  for (const int rank : group_)
    if (rank != team_.rank()) operations.depend_on(rank);
  add(schedule_of(request_, placement_, chosen.method, member_, in_place_));
}

void CollectiveMaker::add(const collective::Schedule& schedule) {
  pw::PlanOperations& operations = builder_->plan->operations();
  const pw::DeviceId id = device_->id();
  GivenMemory scratch;
  if (schedule.scratch_bytes > 0)
    scratch = {context_->allocate({id.kind, id.index}, schedule.scratch_bytes), 0, schedule.scratch_bytes};
  const auto in = [&](collective::Buffer buffer) -> const GivenMemory& {
    return buffer == collective::Buffer::to ? to_ : buffer == collective::Buffer::from ? from_ : scratch;
  };
  const auto block_of = [&](const collective::BufferRange& range) {
    pw_block block{};
    block.offset = in(range.buffer).offset + range.offset;
    block.block_bytes = range.bytes;
    return block;
  };
  // A tag for each message of a round between the same members.
  const auto tag_of = [](const collective::MemberMessage& message) {
    return static_cast<int>(2 * message.round + message.part);
  };
  for (const collective::MemberMessage& message : schedule.sends)
    operations.send(group_[message.member], tag_of(message), in(message.range.buffer).region,
                    block_of(message.range), message.round);
  for (const collective::MemberMessage& message : schedule.receives)
    operations.receive(group_[message.member], tag_of(message), in(message.range.buffer).region,
                       block_of(message.range), message.round);
  const auto address_of = [&](const collective::BufferRange& range) {
    return reinterpret_cast<unsigned char*>(in(range.buffer).address() + range.offset);
  };
  for (const collective::Combination& combination : schedule.combinations)
    operations.reduce(
        {combination.round,
         {request_.element, request_.combine, combination.operands, combination.place, combination.count,
          combination.stride, address_of(combination.to), address_of(combination.local),
          address_of({collective::Buffer::scratch, combination.others, 0})},
         combination.local.bytes,
         {to_.region, from_.region, scratch.region}});
}

}  // namespace

extern "C" {

pw_status pw_collective_create(pw_context* context, const pw_collective* arguments, pw_plan** plan) {
  const pw::trace::Call call(__builtin_return_address(0));
  return pw::catch_errors(__func__, given(context, arguments, plan), [&] {
    pw::Team& team = context->context->team();
    std::optional<pw_collective> room;
    const pw_collective& sized = *pw::sized(arguments, room, "pw_collective");
    const std::vector<int32_t> group = collective::group_of(team, sized.ranks, sized.rank_count);
    CollectiveMaker maker(context->open(), sized, group);
    auto exchange =
        collective::run_exchange_of(team, group, [&](pw::Exchange& with) { maker.make_in(with); });
    *plan = maker.finish(std::move(exchange));
    return PW_OK;
  });
}

}  // extern "C"
