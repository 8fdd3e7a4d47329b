// The .safetensors reader against well-formed and hostile files, and the writer's promises.
#include "base/safetensors.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>

namespace dsattn {
namespace {

std::string file_of(std::string_view header, size_t data_bytes, uint64_t claimed_length) {
  std::string file(8, '\0');
  std::memcpy(file.data(), &claimed_length, 8);
  file += header;
  for (size_t i = 0; i < data_bytes; ++i) file.push_back(static_cast<char>(i));
  return file;
}

std::string file_of(std::string_view header, size_t data_bytes) {
  return file_of(header, data_bytes, header.size());
}

Result<Safetensors> parse(std::string_view file) {
  return parse_safetensors(std::as_bytes(std::span(file)), "hostile.safetensors");
}

/// Each test has a directory of its own.
class SafetensorsFile : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "dsattn-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  size_t files() const {
    using It = std::filesystem::directory_iterator;
    return static_cast<size_t>(std::distance(It(folder_), It()));
  }

  std::filesystem::path folder_;
};

Safetensors sample() {
  Safetensors content;
  int64_t extent = 3;
  for (DType dtype : {DType::kBF16, DType::kF16, DType::kF32, DType::kF64, DType::kI32}) {
    auto tensor = OwnedTensor::make(dtype, std::array<int64_t, 2>{extent++, 5});
    for (std::byte& byte : tensor->bytes()) byte = static_cast<std::byte>(extent * 7 + 1);
    content.tensors[std::string("t.") + std::string(to_string(dtype))] = *tensor;
  }
  content.tensors["empty"] = *OwnedTensor::make(DType::kF32, std::array<int64_t, 2>{0, 9});
  content.tensors["scalar"] = *OwnedTensor::make(DType::kF32, {});
  content.metadata = {{"op", "sparse_attention"}, {"note", "naïve \"quotes\"\n"}};
  return content;
}

TEST(Safetensors, ReadsAHandMadeFile) {
  const auto file = parse(
      file_of(R"({"__metadata__":{"a":"b"},"y":{"dtype":"I32","shape":[1],"data_offsets":[8,12]},)"
              R"("x":{"dtype":"F16","shape":[2,2],"data_offsets":[0,8]}}   )",
              12));
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->metadata.at("a"), "b");
  EXPECT_EQ(to_string(file->tensors.at("x").view()), "(2, 2) F16 on cpu");
  EXPECT_EQ(file->tensors.at("x").elements<uint16_t>()[3], 0x0706);
  EXPECT_EQ(file->tensors.at("y").elements<int32_t>()[0], 0x0B0A0908);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(file->tensors.at("y").view().data) % kStorageAlignment, 0u);
}

TEST_F(SafetensorsFile, RoundTrip) {
  const Safetensors written = sample();
  const auto path = folder_ / "round.safetensors";
  ASSERT_TRUE(write_safetensors(path, written));
  EXPECT_EQ(files(), 1u);  // no temporary file stays
  const auto read = read_safetensors(path);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->metadata, written.metadata);
  ASSERT_EQ(read->tensors.size(), written.tensors.size());
  for (const auto& [name, tensor] : written.tensors) {
    const OwnedTensor& other = read->tensors.at(name);
    EXPECT_EQ(to_string(other.view()), to_string(tensor.view())) << name;
    EXPECT_TRUE(std::ranges::equal(other.bytes(), tensor.bytes())) << name;
  }
}

TEST_F(SafetensorsFile, AnErrorLeavesTheOldFile) {
  const auto path = folder_ / "old.safetensors";
  ASSERT_TRUE(write_safetensors(path, sample()));
  const auto size = std::filesystem::file_size(path);
  Safetensors bad = sample();
  bad.metadata["broken"] = "\xff\xfe";
  const auto result = write_safetensors(path, bad);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kIo);
  EXPECT_EQ(std::filesystem::file_size(path), size);
  EXPECT_EQ(files(), 1u);
  EXPECT_FALSE(write_safetensors(folder_, sample()));
  EXPECT_FALSE(write_safetensors(folder_ / "absent" / "x.safetensors", sample()));
}

TEST_F(SafetensorsFile, FilesThatAreNone) {
  const auto absent = read_safetensors(folder_ / "absent");
  ASSERT_FALSE(absent);
  EXPECT_NE(absent.error().message.find("No such file"), std::string::npos);
  EXPECT_FALSE(read_safetensors(folder_));
  EXPECT_FALSE(read_safetensors("/dev/zero"));  // endless: refused before it is read
  std::ofstream(folder_ / "short") << "abc";
  EXPECT_FALSE(read_safetensors(folder_ / "short"));
}

TEST_F(SafetensorsFile, EveryTruncationIsAnError) {
  const auto path = folder_ / "whole.safetensors";
  ASSERT_TRUE(write_safetensors(path, sample()));
  std::ifstream stream(path, std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(stream)), {});
  ASSERT_TRUE(parse(whole));
  for (size_t size = 0; size < whole.size(); ++size) {
    const auto result = parse(std::string_view(whole).substr(0, size));
    ASSERT_FALSE(result) << size;
    ASSERT_EQ(result.error().code, ErrorCode::kIo);
  }
}

struct Hostile {
  std::string name;
  std::string file;
  std::string message;  ///< what the error has to mention
};

std::string entry(std::string_view fields, size_t data_bytes = 8) {
  return file_of("{\"x\":{" + std::string(fields) + "}}", data_bytes);
}

std::vector<Hostile> hostile_files() {
  const std::string deep(100000, '[');
  const std::string ok = R"("dtype":"F32","shape":[2],"data_offsets":[0,8])";
  return {
      {"Empty", "", "0 bytes long"},
      {"LengthPastEnd", file_of("{}", 0, 3), "header's length is 3, but only 2"},
      {"LengthHuge", file_of("{}", 0, UINT64_MAX), "header's length is 18446744073709551615"},
      {"NoHeader", file_of("", 4), "does not start with '{'"},
      {"LeadingSpace", file_of(" {}", 0), "does not start with '{'"},
      {"NotJson", file_of("{nonsense", 0), "malformed"},
      {"Unfinished", file_of("{\"x\":", 0), "malformed"},
      {"TrailingText", file_of("{}x", 0), "malformed"},
      {"Array", file_of("[]", 0), "does not start with '{'"},
      {"BadUtf8", file_of("{\"\xff\":{}}", 0), "malformed"},
      {"BadUtf8Metadata", file_of("{\"__metadata__\":{\"a\":\"\xc3\x28\"}}", 0), "malformed"},
      {"DeepNesting", file_of("{\"x\":{\"shape\":" + deep, 0), "shape"},
      {"DeepObjects", file_of("{\"x\":{\"dtype\":{\"a\":{}}}}", 0), "expected a string"},
      {"MetadataNumber", file_of(R"({"__metadata__":{"a":1}})", 0), "expected a string"},
      {"MetadataNested", file_of(R"({"__metadata__":{"a":{}}})", 0), "expected a string"},
      {"MetadataTwice", file_of(R"({"__metadata__":{},"__metadata__":{}})", 0), "twice"},
      {"MetadataKeyTwice", file_of(R"({"__metadata__":{"a":"1","a":"2"}})", 0), "twice"},
      {"NameTwice", file_of("{\"x\":{" + ok + "},\"x\":{" + ok + "}}", 8), "'x' appears twice"},
      {"FieldTwice", entry(R"("dtype":"F32",)" + ok), "'dtype' twice"},
      {"UnknownField", entry(ok + R"(,"extra":"1")"), "unknown field 'extra'"},
      {"NotAnObject", file_of(R"({"x":5})", 0), "expected an object"},
      {"NoDtype", entry(R"("shape":[2],"data_offsets":[0,8])"), "no 'dtype'"},
      {"NoShape", entry(R"("dtype":"F32","data_offsets":[0,8])"), "no 'shape'"},
      {"NoOffsets", entry(R"("dtype":"F32","shape":[2])"), "no 'data_offsets'"},
      {"OneOffset", entry(R"("dtype":"F32","shape":[2],"data_offsets":[0])"), "1 data_offsets"},
      {"ThreeOffsets", entry(R"("dtype":"F32","shape":[2],"data_offsets":[0,8,9])"), "more than 2"},
      {"TypeI64", entry(R"("dtype":"I64","shape":[1],"data_offsets":[0,8])"), "is I64, expected"},
      {"TypeUnknown", entry(R"("dtype":"f32","shape":[2],"data_offsets":[0,8])"), "is f32"},
      {"Rank5", entry(R"("dtype":"F32","shape":[1,1,1,1,2],"data_offsets":[0,8])"), "more than 4"},
      {"NegativeExtent", entry(R"("dtype":"F32","shape":[-2],"data_offsets":[0,8])"), "-2"},
      {"FloatExtent", entry(R"("dtype":"F32","shape":[2.0],"data_offsets":[0,8])"), "2.0"},
      {"HugeExtent", entry(R"("dtype":"F32","shape":[99999999999999999999],"data_offsets":[0,8])"),
       "shape"},
      {"ProductOverflow",
       entry(R"("dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8])"),
       "beyond 64 bits"},
      {"ProductOverflowTimesZero",
       entry(R"("dtype":"F32","shape":[0,4294967296,4294967296],"data_offsets":[0,0])", 0),
       "beyond 64 bits"},
      {"ShapeMismatch", entry(R"("dtype":"F32","shape":[3],"data_offsets":[0,8])"),
       "needs 12 bytes"},
      {"OffsetsReversed", entry(R"("dtype":"F32","shape":[2],"data_offsets":[8,0])"), "[8, 0]"},
      {"OffsetsPastEnd", entry(R"("dtype":"F32","shape":[4],"data_offsets":[0,16])"),
       "has 8 bytes of data"},
      {"OffsetsHuge", entry(R"("dtype":"F32","shape":[2],"data_offsets":[18446744073709551608,0])"),
       "18446744073709551608"},
      {"Overlap",
       file_of("{\"x\":{" + ok + R"(},"y":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})", 12),
       "overlap"},
      {"Gap",
       file_of("{\"x\":{" + ok + R"(},"y":{"dtype":"F32","shape":[1],"data_offsets":[9,13]}})", 13),
       "gaps"},
      {"TrailingData", entry(ok, 9), "end at byte 8"},
  };
}

class HostileSafetensors : public testing::TestWithParam<Hostile> {};

TEST_P(HostileSafetensors, IsRefusedWithTheReason) {
  const auto result = parse(GetParam().file);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kIo);
  EXPECT_EQ(result.error().message.rfind("hostile.safetensors: ", 0), 0u);
  EXPECT_NE(result.error().message.find(GetParam().message), std::string::npos)
      << result.error().message;
}

INSTANTIATE_TEST_SUITE_P(All, HostileSafetensors, testing::ValuesIn(hostile_files()),
                         [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace dsattn
