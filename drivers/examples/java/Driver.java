import com.google.protobuf.ExtensionRegistry;
import com.google.protobuf.InvalidProtocolBufferException;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.FileOutputStream;
import java.io.FileDescriptor;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.TreeSet;
import pl.edu.agh.amber.common.proto.CommonProto.DriverHdr;
import pl.edu.agh.amber.common.proto.CommonProto.DriverMsg;
import pl.edu.agh.amber.common.proto.CommonProto.DriverMsg.MsgType;

/**
 * The part that all drivers share: frames, PINGs, subscribers, answers.
 *
 * <p>Calls of the methods to override never overlap.
 */
abstract class Driver {
    /** Bytes; older programs read the lengths as signed numbers. */
    private static final int MAX_PART = 32767;

    private final int periodMs;
    private final TreeSet<Integer> subscribers = new TreeSet<>();
    private final OutputStream output = new FileOutputStream(FileDescriptor.out);

    /** @param periodMs milliseconds between two publications; 0 = none */
    Driver(int periodMs) {
        this.periodMs = periodMs;
    }

    /** The extensions of this device. */
    abstract void register(ExtensionRegistry registry);

    /** Handles a request or command. Returns the answer, or null if there is none. */
    abstract DriverMsg.Builder request(DriverMsg message, int client);

    /** Returns the data for subscribers, or null. */
    DriverMsg.Builder publish() {
        return null;
    }

    /** A client left or was lost. Stop all motion that it started. */
    void clientGone(int client) {}

    /** The driver ends. Bring the device to a safe state. */
    void stop() {}

    /** Writes a line to stderr, which goes to the mediator's log. */
    static void log(String line) {
        System.err.println(line);
    }

    /** Serves stdin and stdout until stdin ends or SIGTERM arrives. */
    void serve() throws IOException {
        System.setOut(System.err); // stdout is the wire
        Runtime.getRuntime().addShutdownHook(new Thread(this::stopOnce));
        if (periodMs > 0) {
            Thread publisher = new Thread(this::publishForever);
            publisher.setDaemon(true);
            publisher.start();
        }
        ExtensionRegistry registry = ExtensionRegistry.newInstance();
        register(registry);
        DataInputStream input = new DataInputStream(new java.io.BufferedInputStream(System.in));
        try {
            while (true) {
                // readFully waits for the whole part: a single read may return less.
                byte[] header = new byte[input.readUnsignedShort()];
                input.readFully(header);
                byte[] message = new byte[input.readUnsignedShort()];
                input.readFully(message);
                handle(header, message, registry);
            }
        } catch (EOFException end) {
            System.exit(0); // the end of stdin is the end of the driver
        }
    }

    private synchronized void handle(byte[] headerBytes, byte[] messageBytes, ExtensionRegistry registry)
            throws IOException {
        DriverHdr header;
        DriverMsg message;
        try {
            header = DriverHdr.parseFrom(headerBytes);
            message = DriverMsg.parseFrom(messageBytes, registry);
        } catch (InvalidProtocolBufferException error) {
            log("ignored a message that is not a DriverMsg: " + error.getMessage());
            return;
        }
        List<Integer> clients = header.getClientIDsList();
        switch (message.getType()) {
            case PING:
                send(header, DriverMsg.newBuilder().setType(MsgType.PONG), message);
                break;
            case DATA:
                DriverMsg.Builder answer = null;
                try {
                    answer = request(message, clients.isEmpty() ? 0 : clients.get(0));
                } catch (RuntimeException error) {
                    // An error in one request must not end the driver for all clients.
                    error.printStackTrace();
                }
                if (answer != null && message.hasSynNum()) {
                    send(header, answer.setType(MsgType.DATA), message);
                }
                break;
            case SUBSCRIBE:
                subscribers.addAll(clients);
                break;
            case UNSUBSCRIBE:
                subscribers.removeAll(clients);
                break;
            case CLIENT_DIED:
                subscribers.removeAll(clients);
                clients.forEach(this::clientGone);
                break;
            default: // other types do not concern this driver
        }
    }

    private void send(DriverHdr header, DriverMsg.Builder answer, DriverMsg question) throws IOException {
        if (question.hasSynNum()) {
            answer.setAckNum(question.getSynNum());
        }
        write(header, answer.build());
    }

    private void publishForever() {
        try {
            while (true) {
                Thread.sleep(periodMs);
                synchronized (this) {
                    DriverMsg.Builder data = subscribers.isEmpty() ? null : publish();
                    if (data != null) {
                        DriverHdr header = DriverHdr.newBuilder().addAllClientIDs(subscribers).build();
                        // An ackNum of 0 marks published data.
                        write(header, data.setType(MsgType.DATA).setAckNum(0).build());
                    }
                }
            }
        } catch (IOException | InterruptedException error) {
            log("publishing ended: " + error.getMessage());
        }
    }

    private synchronized void write(DriverHdr header, DriverMsg message) throws IOException {
        byte[][] parts = {header.toByteArray(), message.toByteArray()};
        ByteBuffer frame = ByteBuffer.allocate(4 + parts[0].length + parts[1].length);
        for (byte[] part : parts) {
            if (part.length > MAX_PART) {
                log("message not sent: " + part.length + " bytes are too long for a frame");
                return;
            }
            frame.putShort((short) part.length).put(part); // the high byte first
        }
        output.write(frame.array());
    }

    private boolean stopped;

    private synchronized void stopOnce() {
        if (!stopped) {
            stopped = true;
            stop();
        }
    }
}
