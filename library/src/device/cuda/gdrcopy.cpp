#include "device/cuda/gdrcopy.h"

#include <dlfcn.h>

#include "base/format.h"
#include "base/status.h"
#include "device/cuda/mapper.h"

namespace pw::cuda {
namespace {

// The opened library. Its mappings share it, because they may outlive the mapper.
struct Library {
  gdrcopy::Api api;
  gdrcopy::Gdr gdr = nullptr;
  Library() = default;
  Library(const Library&) = delete;
  ~Library() {
    if (gdr != nullptr) api.gdr_close(gdr);
  }
};

class GdrcopyMapping final : public CpuMapping {
 public:
  GdrcopyMapping(std::shared_ptr<Library> library, const Allocation& allocation)
      : library_(std::move(library)) {
    const auto& api = library_->api;
    const auto base = reinterpret_cast<uint64_t>(allocation.base);
    const uint64_t start = base / gdrcopy::kGpuPage * gdrcopy::kGpuPage;
    bytes_ =
        (base + allocation.bytes - start + gdrcopy::kGpuPage - 1) / gdrcopy::kGpuPage * gdrcopy::kGpuPage;
    if (const int error = api.gdr_pin_buffer(library_->gdr, start, bytes_, 0, 0, &handle_); error != 0)
      throw Error(PW_UNAVAILABLE,
                  format("pinning {} bytes of GPU memory{}; the memory must be cudaMalloc's or be made "
                         "for GPUDirect RDMA, and fit into BAR1 (nvidia-smi -q)",
                         bytes_, errno_text(error)));
    gdrcopy::Info info{};
    int error = api.gdr_map(library_->gdr, handle_, &start_, bytes_);
    if (error == 0 && (error = api.gdr_get_info_v2(library_->gdr, handle_, &info)) != 0)
      api.gdr_unmap(library_->gdr, handle_, start_, bytes_);
    if (error != 0) {
      api.gdr_unpin_buffer(library_->gdr, handle_);
      throw Error(PW_UNAVAILABLE,
                  format("mapping {} bytes of pinned GPU memory{}", bytes_, errno_text(error)));
    }
    address_ = static_cast<std::byte*>(start_) + (base - info.va);
  }
  ~GdrcopyMapping() override {
    library_->api.gdr_unmap(library_->gdr, handle_, start_, bytes_);
    library_->api.gdr_unpin_buffer(library_->gdr, handle_);
  }

  // The library uses the fastest instructions for its kind of mapping, and ends with the necessary fence.
  void store(std::byte* to, const std::byte* from, uint64_t bytes) override {
    library_->api.gdr_copy_to_mapping(handle_, to, from, bytes);
  }
  void load(std::byte* to, const std::byte* from, uint64_t bytes) override {
    library_->api.gdr_copy_from_mapping(handle_, to, from, bytes);
  }

 private:
  std::shared_ptr<Library> library_;
  gdrcopy::MemoryHandle handle_{};
  void* start_ = nullptr;
  uint64_t bytes_ = 0;
};

class GdrcopyMapper final : public CpuMapper {
 public:
  explicit GdrcopyMapper(std::shared_ptr<Library> library) : library_(std::move(library)) {}
  [[nodiscard]] std::string_view name() const override { return "gdrcopy"; }
  std::unique_ptr<CpuMapping> map(Device&, const Allocation& allocation) override {
    return std::make_unique<GdrcopyMapping>(library_, allocation);
  }

 private:
  std::shared_ptr<Library> library_;
};

// Returns the first function that the library lacks, or null.
const char* resolve(gdrcopy::Api& api, void* handle) {
  const char* missing = nullptr;
  const auto get = [&](auto& pointer, const char* name) {
    pointer = reinterpret_cast<std::remove_reference_t<decltype(pointer)>>(dlsym(handle, name));
    if (pointer == nullptr) missing = name;
  };
  get(api.gdr_open, "gdr_open");
  get(api.gdr_close, "gdr_close");
  get(api.gdr_pin_buffer, "gdr_pin_buffer");
  get(api.gdr_unpin_buffer, "gdr_unpin_buffer");
  get(api.gdr_get_info_v2, "gdr_get_info_v2");
  get(api.gdr_map, "gdr_map");
  get(api.gdr_unmap, "gdr_unmap");
  get(api.gdr_copy_to_mapping, "gdr_copy_to_mapping");
  get(api.gdr_copy_from_mapping, "gdr_copy_from_mapping");
  return missing;
}

}  // namespace

std::unique_ptr<CpuMapper> make_gdrcopy_mapper(const std::string& setting, std::string& why) {
  const std::string name = setting.empty() ? "libgdrapi.so.2" : setting;
  void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    why = format("GDRCopy's library {} was not found; install GDRCopy (gdrdrv and libgdrapi)", name);
    return nullptr;
  }
  auto library = std::make_shared<Library>();
  if (const char* missing = resolve(library->api, handle)) {
    why = format("{} has no {}; install GDRCopy 2.0 or newer", name, missing);
    return nullptr;
  }
  library->gdr = library->api.gdr_open();
  if (library->gdr == nullptr) {
    why = "GDRCopy's kernel module does not answer; load gdrdrv (modprobe gdrdrv) and check /dev/gdrdrv";
    return nullptr;
  }
  return std::make_unique<GdrcopyMapper>(std::move(library));
}

}  // namespace pw::cuda
