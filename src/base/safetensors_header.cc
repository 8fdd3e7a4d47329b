#include "base/safetensors_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>

namespace dsattn {
namespace {

constexpr std::string_view kMetadataKey = "__metadata__";
constexpr size_t kOffsets = 2;

/// The entry under construction, as the file wrote it.
struct RawEntry {
  std::string name;
  std::string dtype;
  std::vector<uint64_t> shape;
  std::vector<uint64_t> offsets;
  bool has_dtype = false;
  bool has_shape = false;
  bool has_offsets = false;
};

/// nlohmann's event interface. Returning false stops the parse; `problem` then says why.
class HeaderHandler {
 public:
  using number_integer_t = nlohmann::json::number_integer_t;
  using number_unsigned_t = nlohmann::json::number_unsigned_t;
  using number_float_t = nlohmann::json::number_float_t;
  using string_t = nlohmann::json::string_t;
  using binary_t = nlohmann::json::binary_t;

  std::vector<RawEntry> entries;
  MetadataMap metadata;
  std::string problem;

  bool start_object(size_t) {
    if (place_ == Place::kStart) return go(Place::kTop);
    if (place_ == Place::kTop) return go(in_metadata() ? Place::kMetadata : Place::kEntry);
    return unexpected("an object");
  }
  bool end_object() {
    if (place_ == Place::kTop) return go(Place::kDone);
    if (place_ == Place::kEntry) {
      if (!entry_complete()) return false;
      entries.push_back(std::move(entry_));
      entry_ = {};
    }
    return go(Place::kTop);
  }
  bool start_array(size_t) {
    if (place_ != Place::kEntry) return unexpected("a list");
    if (field_ == "shape") return go(Place::kShape);
    if (field_ == "data_offsets") return go(Place::kOffsetList);
    return unexpected("a list");
  }
  bool end_array() { return go(Place::kEntry); }

  bool key(string_t& name) {
    if (place_ == Place::kTop) {
      if (!names_.insert(name).second)
        return stop(fmt::format("the name '{}' appears twice", name));
      entry_.name = name;
      return true;
    }
    field_ = name;
    if (place_ == Place::kMetadata) {
      if (!metadata.contains(name)) return true;
      return stop(fmt::format("__metadata__ has '{}' twice", name));
    }
    bool* seen = field_flag();
    if (seen == nullptr)
      return stop(fmt::format("tensor '{}' has the unknown field '{}'", entry_.name, name));
    if (*seen) return stop(fmt::format("tensor '{}' has '{}' twice", entry_.name, name));
    *seen = true;
    return true;
  }

  bool string(string_t& text) {
    if (place_ == Place::kMetadata) {
      metadata.emplace(field_, std::move(text));
      return true;
    }
    if (place_ != Place::kEntry || field_ != "dtype") return unexpected("a string");
    entry_.dtype = std::move(text);
    return true;
  }
  bool number_unsigned(number_unsigned_t value) {
    if (place_ == Place::kShape) {
      if (entry_.shape.size() == kMaxRank) {
        return stop(fmt::format("tensor '{}' has more than {} dimensions", entry_.name, kMaxRank));
      }
      entry_.shape.push_back(value);
      return true;
    }
    if (place_ != Place::kOffsetList) return unexpected("a number");
    if (entry_.offsets.size() == kOffsets) {
      return stop(fmt::format("tensor '{}' has more than 2 data_offsets", entry_.name));
    }
    entry_.offsets.push_back(value);
    return true;
  }
  bool number_integer(number_integer_t value) { return unexpected(fmt::format("{}", value)); }
  bool number_float(number_float_t, const string_t& text) { return unexpected(text); }
  bool null() { return unexpected("null"); }
  bool boolean(bool) { return unexpected("a boolean"); }
  bool binary(binary_t&) { return unexpected("binary data"); }
  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception& error) {
    // The library's text starts with its own code in brackets, which helps nobody here.
    std::string_view text = error.what();
    if (const size_t end = text.find("] "); end != text.npos) text.remove_prefix(end + 2);
    return stop(fmt::format("the JSON is malformed at its byte {}: {}", position, text));
  }

 private:
  enum class Place { kStart, kTop, kMetadata, kEntry, kShape, kOffsetList, kDone };

  bool go(Place place) {
    place_ = place;
    return true;
  }
  bool stop(std::string why) {
    problem = std::move(why);
    return false;
  }
  bool in_metadata() const { return entry_.name == kMetadataKey; }
  bool unexpected(std::string_view what) {
    switch (place_) {
      case Place::kStart:
      case Place::kDone:
        return stop(fmt::format("{} in the place of the header's object", what));
      case Place::kTop:
        return stop(fmt::format("'{}' is {}, expected an object", entry_.name, what));
      case Place::kMetadata:
        return stop(fmt::format("__metadata__ '{}' is {}, expected a string", field_, what));
      case Place::kEntry:
      case Place::kShape:
      case Place::kOffsetList:
        break;
    }
    const std::string_view wanted = field_ == "dtype" ? "a string" : "a list of integers >= 0";
    return stop(
        fmt::format("tensor '{}': '{}' has {}, expected {}", entry_.name, field_, what, wanted));
  }
  bool* field_flag() {
    if (field_ == "dtype") return &entry_.has_dtype;
    if (field_ == "shape") return &entry_.has_shape;
    if (field_ == "data_offsets") return &entry_.has_offsets;
    return nullptr;
  }
  bool entry_complete() {
    for (const auto& [present, name] :
         {std::pair(entry_.has_dtype, "dtype"), std::pair(entry_.has_shape, "shape"),
          std::pair(entry_.has_offsets, "data_offsets")}) {
      if (!present) return stop(fmt::format("tensor '{}' has no '{}'", entry_.name, name));
    }
    if (entry_.offsets.size() == kOffsets) return true;
    return stop(fmt::format("tensor '{}' has {} data_offsets, expected 2", entry_.name,
                            entry_.offsets.size()));
  }

  Place place_ = Place::kStart;
  RawEntry entry_;
  std::string field_;
  std::set<std::string, std::less<>> names_;
};

DType dtype_named(std::string_view name) {
  for (DType dtype : {DType::kBF16, DType::kF16, DType::kF32, DType::kF64, DType::kI32}) {
    if (name == to_string(dtype)) return dtype;
  }
  return DType::kNone;
}

/// The entry with every number checked: type known, size = type times shape = byte range in file.
Result<HeaderEntry> checked_entry(RawEntry raw, uint64_t data_bytes) {
  HeaderEntry entry;
  entry.dtype = dtype_named(raw.dtype);
  if (entry.dtype == DType::kNone) {
    return fail(ErrorCode::kIo, fmt::format("tensor '{}' is {}, expected BF16, F16, F32, F64 or "
                                            "I32",
                                            raw.name, raw.dtype));
  }
  auto bytes = static_cast<uint64_t>(size_bytes(entry.dtype));
  uint64_t reach = bytes;
  bool empty = false;
  for (uint64_t extent : raw.shape) {
    empty = empty || extent == 0;
    if (__builtin_mul_overflow(reach, std::max<uint64_t>(extent, 1), &reach) || reach > INT64_MAX) {
      return fail(ErrorCode::kIo, fmt::format("tensor '{}': the shape ({}) is beyond 64 bits",
                                              raw.name, fmt::join(raw.shape, ", ")));
    }
    entry.shape.push_back(static_cast<int64_t>(extent));
  }
  bytes = empty ? 0 : reach;
  entry.begin = raw.offsets[0];
  entry.end = raw.offsets[1];
  if (entry.begin > entry.end || entry.end > data_bytes) {
    return fail(ErrorCode::kIo,
                fmt::format("tensor '{}' has data_offsets [{}, {}], but the file has {} bytes of "
                            "data",
                            raw.name, entry.begin, entry.end, data_bytes));
  }
  if (entry.end - entry.begin != bytes) {
    return fail(ErrorCode::kIo,
                fmt::format("tensor '{}' ({}) {} needs {} bytes, but its data_offsets [{}, {}] "
                            "span {}",
                            raw.name, fmt::join(raw.shape, ", "), raw.dtype, bytes, entry.begin,
                            entry.end, entry.end - entry.begin));
  }
  entry.name = std::move(raw.name);
  return entry;
}

/// The format asks that the tensors tile the data; so nothing overlaps and nothing hides between.
Result<void> check_tiling(const std::vector<HeaderEntry>& entries, uint64_t data_bytes) {
  uint64_t expected = 0;
  std::string_view previous;
  for (const HeaderEntry& entry : entries) {
    if (entry.begin != expected) {
      return fail(ErrorCode::kIo,
                  fmt::format("tensor '{}' starts at byte {} of the data, expected {}{}{}: tensors "
                              "may not overlap or leave gaps",
                              entry.name, entry.begin, expected,
                              previous.empty() ? "" : ", the end of ", previous));
    }
    expected = entry.end;
    previous = entry.name;
  }
  if (expected == data_bytes) return {};
  return fail(ErrorCode::kIo, fmt::format("the tensors end at byte {} of the data, but the file "
                                          "has {}",
                                          expected, data_bytes));
}

}  // namespace

Result<SafetensorsHeader> parse_safetensors_header(std::span<const std::byte> text,
                                                   uint64_t data_bytes, std::string_view origin) {
  const auto rejected = [&](std::string_view why) {
    return fail(ErrorCode::kIo, fmt::format("{}: header: {}", origin, why));
  };
  const auto* begin = reinterpret_cast<const char*>(text.data());
  const auto* end = begin + text.size();
  if (text.empty() || *begin != '{') return rejected("does not start with '{'");
  HeaderHandler handler;
  if (!nlohmann::json::sax_parse(begin, end, &handler)) return rejected(handler.problem);

  SafetensorsHeader header;
  header.metadata = std::move(handler.metadata);
  for (RawEntry& raw : handler.entries) {
    Result<HeaderEntry> entry = checked_entry(std::move(raw), data_bytes);
    if (!entry) return rejected(entry.error().message);
    header.entries.push_back(std::move(*entry));
  }
  std::sort(header.entries.begin(), header.entries.end(),
            [](const HeaderEntry& a, const HeaderEntry& b) {
              return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
            });
  if (auto tiled = check_tiling(header.entries, data_bytes); !tiled) {
    return rejected(tiled.error().message);
  }
  return header;
}

}  // namespace dsattn
