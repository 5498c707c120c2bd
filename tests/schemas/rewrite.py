"""Reads messages with Google's protobuf and writes them again.

The first argument is a descriptor set of protoc. Each line of stdin
is the full name of a message and its bytes in hex; each line of stdout is
the rewritten bytes, or an error message.
"""

import sys

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory


files = descriptor_pb2.FileDescriptorSet()
with open(sys.argv[1], "rb") as file:
    files.ParseFromString(file.read())
pool = descriptor_pool.DescriptorPool()
for file in files.file:
    pool.AddSerializedFile(file.SerializeToString())

names = [file.name for file in files.file]
if hasattr(message_factory, "GetMessageClassesForFiles"):
    classes = message_factory.GetMessageClassesForFiles(names, pool)
else:  # before 4.22
    classes = message_factory.MessageFactory(pool).GetMessages(names)

for line in sys.stdin:
    name, _, data = line.rstrip("\n").partition(" ")
    try:
        message = classes[name].FromString(bytes.fromhex(data))
        missing = message.FindInitializationErrors()
        message.DiscardUnknownFields()
        print("missing: %s" % missing if missing else message.SerializeToString(deterministic=True).hex())
    except Exception as error:
        print("%s: %s" % (type(error).__name__, error))
