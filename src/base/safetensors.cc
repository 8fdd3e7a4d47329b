#include "base/safetensors.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/safetensors_header.h"

namespace dsattn {
namespace {

static_assert(std::endian::native == std::endian::little, "files are little endian");

constexpr size_t kLengthBytes = 8;

/// Owns a file descriptor.
class File {
 public:
  explicit File(int fd) : fd_(fd) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() { close(); }

  bool is_open() const { return fd_ >= 0; }
  int fd() const { return fd_; }
  bool close() {
    const int fd = std::exchange(fd_, -1);
    return fd < 0 || ::close(fd) == 0;
  }

  bool read_exactly(std::span<std::byte> to) {
    while (!to.empty()) {
      const ssize_t got = ::read(fd_, to.data(), to.size());
      if (got < 0 && errno == EINTR) continue;
      if (got == 0) errno = EIO;  // shrank while we read it
      if (got <= 0) return false;
      to = to.subspan(static_cast<size_t>(got));
    }
    return true;
  }

  bool write_all(std::span<const std::byte> from) {
    while (!from.empty()) {
      const ssize_t put = ::write(fd_, from.data(), from.size());
      if (put < 0 && errno == EINTR) continue;
      if (put <= 0) return false;
      from = from.subspan(static_cast<size_t>(put));
    }
    return true;
  }

 private:
  int fd_;
};

tl::unexpected<Error> io_error(std::string_view origin, std::string_view what) {
  return fail(ErrorCode::kIo, fmt::format("{}: {}", origin, what));
}

tl::unexpected<Error> system_error(std::string_view origin, std::string_view action) {
  return fail(ErrorCode::kIo, fmt::format("{}: cannot {}: {}", origin, action, strerror(errno)));
}

/// The header's length, checked against the file's.
Result<uint64_t> header_length(std::span<const std::byte> prefix, uint64_t file_bytes,
                               std::string_view origin) {
  if (file_bytes < kLengthBytes) {
    return io_error(origin, fmt::format("{} bytes long, expected at least the {} of the header's "
                                        "length: not a safetensors file",
                                        file_bytes, kLengthBytes));
  }
  uint64_t length = 0;
  std::memcpy(&length, prefix.data(), kLengthBytes);
  const uint64_t room = file_bytes - kLengthBytes;
  if (length > room) {
    return io_error(origin, fmt::format("byte 0: the header's length is {}, but only {} bytes "
                                        "follow: truncated, or not a safetensors file",
                                        length, room));
  }
  if (length > kMaxHeaderBytes) {
    return io_error(origin, fmt::format("byte 0: the header's length is {}, expected at most {}",
                                        length, kMaxHeaderBytes));
  }
  return length;
}

/// Makes each tensor of the header and lets `fill` copy its bytes [begin, begin + size) of the
/// data.
template <class Fill>
Result<Safetensors> build(SafetensorsHeader header, std::string_view origin, const Fill& fill) {
  Safetensors content;
  content.metadata = std::move(header.metadata);
  for (const HeaderEntry& entry : header.entries) {
    Result<OwnedTensor> tensor = OwnedTensor::make(entry.dtype, entry.shape);
    if (!tensor) {
      return io_error(origin, fmt::format("tensor '{}': {}", entry.name, tensor.error().message));
    }
    if (!fill(entry.begin, tensor->bytes())) {
      return system_error(origin, fmt::format("read tensor '{}'", entry.name));
    }
    content.tensors.emplace(entry.name, std::move(*tensor));
  }
  return content;
}

std::string header_text(const Safetensors& content) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!content.metadata.empty()) header["__metadata__"] = content.metadata;
  size_t offset = 0;
  for (const auto& [name, tensor] : content.tensors) {
    const size_t end = offset + tensor.bytes().size();
    header[name] = {{"dtype", to_string(tensor.dtype())},
                    {"shape", nlohmann::ordered_json::array()},
                    {"data_offsets", {offset, end}}};
    for (int64_t extent : tensor.shape()) header[name]["shape"].push_back(extent);
    offset = end;
  }
  std::string text = header.dump();
  // Spaces are legal at the end; they put the data on a multiple of the alignment.
  while ((kLengthBytes + text.size()) % kStorageAlignment != 0) text.push_back(' ');
  return text;
}

bool write_content(File& file, const std::string& header, const Safetensors& content) {
  const uint64_t length = header.size();
  if (!file.write_all(std::as_bytes(std::span(&length, 1)))) return false;
  if (!file.write_all(std::as_bytes(std::span(header)))) return false;
  for (const auto& [name, tensor] : content.tensors) {
    if (!file.write_all(tensor.bytes())) return false;
  }
  return true;
}

}  // namespace

Result<Safetensors> parse_safetensors(std::span<const std::byte> file, std::string_view origin) {
  Result<uint64_t> length = header_length(file, file.size(), origin);
  if (!length) return tl::unexpected(length.error());
  const auto header_bytes = file.subspan(kLengthBytes, *length);
  const auto data = file.subspan(kLengthBytes + *length);
  auto header = parse_safetensors_header(header_bytes, data.size(), origin);
  if (!header) return tl::unexpected(header.error());
  return build(std::move(*header), origin, [&](uint64_t begin, std::span<std::byte> to) {
    if (!to.empty()) std::memcpy(to.data(), data.data() + begin, to.size());
    return true;
  });
}

Result<Safetensors> read_safetensors(const std::filesystem::path& path) {
  const std::string origin = path.string();
  File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.is_open()) return system_error(origin, "open the file");
  struct stat info {};
  if (::fstat(file.fd(), &info) != 0) return system_error(origin, "read the file's size");
  if (!S_ISREG(info.st_mode)) return io_error(origin, "not a regular file");
  const auto size = static_cast<uint64_t>(info.st_size);

  std::byte prefix[kLengthBytes] = {};
  if (size >= kLengthBytes && !file.read_exactly(prefix)) return system_error(origin, "read");
  Result<uint64_t> length = header_length(prefix, size, origin);
  if (!length) return tl::unexpected(length.error());
  std::vector<std::byte> text(*length);
  if (!file.read_exactly(text)) return system_error(origin, "read the header");
  const uint64_t data_start = kLengthBytes + *length;
  auto header = parse_safetensors_header(text, size - data_start, origin);
  if (!header) return tl::unexpected(header.error());
  return build(std::move(*header), origin, [&](uint64_t begin, std::span<std::byte> to) {
    return ::lseek(file.fd(), static_cast<off_t>(data_start + begin), SEEK_SET) >= 0 &&
           file.read_exactly(to);
  });
}

Result<void> write_safetensors(const std::filesystem::path& path, const Safetensors& content) {
  const std::string origin = path.string();
  if (content.tensors.contains("__metadata__")) {
    return io_error(origin, "a tensor may not be named __metadata__");
  }
  std::string header;
  try {
    header = header_text(content);
  } catch (const nlohmann::json::exception& error) {  // a name or value that is not UTF-8
    return io_error(origin, fmt::format("cannot write the header: {}", error.what()));
  }
  if (header.size() > kMaxHeaderBytes) {
    return io_error(origin, fmt::format("the header has {} bytes, expected at most {}",
                                        header.size(), kMaxHeaderBytes));
  }
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    return io_error(origin, "exists and is not a regular file");
  }
  std::string temporary = origin + ".partial-XXXXXX";
  File file(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!file.is_open()) return system_error(origin, "make a temporary file beside it");
  const mode_t mask = ::umask(0);
  ::umask(mask);
  const bool written = ::fchmod(file.fd(), 0666 & ~mask) == 0 &&
                       write_content(file, header, content) && file.close() &&
                       ::rename(temporary.c_str(), path.c_str()) == 0;
  if (written) return {};
  const auto error = system_error(origin, "write the file");
  ::unlink(temporary.c_str());
  return error;
}

}  // namespace dsattn
