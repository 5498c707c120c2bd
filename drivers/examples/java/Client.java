import com.google.protobuf.ExtensionRegistry;
import com.google.protobuf.InvalidProtocolBufferException;
import java.net.DatagramPacket;
import java.net.DatagramSocket;
import java.net.InetSocketAddress;
import java.net.PortUnreachableException;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;
import pl.edu.agh.amber.common.proto.CommonProto.DriverHdr;
import pl.edu.agh.amber.common.proto.CommonProto.DriverMsg;
import pl.edu.agh.amber.common.proto.CommonProto.DriverMsg.MsgType;
import pl.edu.agh.amber.dummy.proto.DummyProto;
import thermometer.ThermometerProto;

/**
 * Asks a Dummy and a thermometer, whichever is there.
 *
 * <pre>./run Client [HOST [PORT]]</pre>
 */
final class Client {
    private static final int DUMMY = 5;
    private static final int THERMOMETER = 201;

    private final DatagramSocket socket = new DatagramSocket();
    private final ExtensionRegistry registry = ExtensionRegistry.newInstance();
    private int lastNumber;

    private Client(String host, int port) throws Exception {
        socket.connect(new InetSocketAddress(host, port));
        socket.setSoTimeout(1000);
        DummyProto.registerAllExtensions(registry);
        ThermometerProto.registerAllExtensions(registry);
    }

    private void send(int deviceType, DriverMsg message) throws Exception {
        byte[] header = DriverHdr.newBuilder().setDeviceType(deviceType).setDeviceID(0).build().toByteArray();
        byte[] body = message.toByteArray();
        ByteBuffer frame = ByteBuffer.allocate(4 + header.length + body.length);
        frame.putShort((short) header.length).put(header).putShort((short) body.length).put(body);
        socket.send(new DatagramPacket(frame.array(), frame.capacity()));
    }

    /** The answer with the number of the request; null after a second: UDP may lose either. */
    private DriverMsg ask(int deviceType, DriverMsg.Builder question) throws Exception {
        int number = ++lastNumber;
        send(deviceType, question.setType(MsgType.DATA).setSynNum(number).build());
        while (true) {
            DatagramPacket packet = new DatagramPacket(new byte[65536], 65536);
            try {
                socket.receive(packet);
            } catch (SocketTimeoutException | PortUnreachableException nobody) {
                return null;
            }
            DriverMsg answer;
            try {
                ByteBuffer frame = ByteBuffer.wrap(packet.getData(), 0, packet.getLength());
                frame.position(2 + Short.toUnsignedInt(frame.getShort()));
                byte[] body = new byte[Short.toUnsignedInt(frame.getShort())];
                frame.get(body);
                answer = DriverMsg.parseFrom(body, registry);
            } catch (RuntimeException | InvalidProtocolBufferException junk) {
                continue; // anybody can send us anything
            }
            if (answer.getAckNum() == number) {
                return answer;
            }
        }
    }

    public static void main(String[] arguments) throws Exception {
        String host = arguments.length > 0 ? arguments[0] : "127.0.0.1";
        int port = arguments.length > 1 ? Integer.parseInt(arguments[1]) : 26233;
        Client client = new Client(host, port);
        DriverMsg goodbye = DriverMsg.newBuilder().setType(MsgType.CLIENT_DIED).build();
        int answers = 0;

        DriverMsg.Builder status = DriverMsg.newBuilder().setExtension(DummyProto.getStatus, true);
        DriverMsg dummy = client.ask(DUMMY, status);
        if (dummy != null && dummy.hasExtension(DummyProto.message)) {
            answers++;
            System.out.println("the dummy says: " + dummy.getExtension(DummyProto.message));
            client.send(DUMMY, goodbye);
        }
        DriverMsg.Builder question =
                DriverMsg.newBuilder().setExtension(ThermometerProto.getTemperature, true);
        DriverMsg thermometer = client.ask(THERMOMETER, question);
        if (thermometer != null && thermometer.hasExtension(ThermometerProto.temperature)) {
            answers++;
            ThermometerProto.Temperature temperature = thermometer.getExtension(ThermometerProto.temperature);
            System.out.println(temperature.hasCelsius()
                    ? String.format("the thermometer says: %.1f degrees", temperature.getCelsius())
                    : "the thermometer has no sensor");
            client.send(THERMOMETER, goodbye);
        }
        if (answers == 0) {
            System.err.println("error: no answer; does a mediator with a dummy or a thermometer run there?");
            System.exit(1);
        }
    }
}
