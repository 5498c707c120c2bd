import com.google.protobuf.ExtensionRegistry;
import com.google.protobuf.InvalidProtocolBufferException;
import java.io.IOException;
import java.net.SocketTimeoutException;
import java.nio.file.Files;
import java.nio.file.Path;
import pl.edu.agh.amber.camera.proto.CameraProto;
import pl.edu.agh.amber.common.proto.CommonProto.DriverMsg;
import pl.edu.agh.amber.common.proto.CommonProto.DriverMsg.MsgType;
import pl.edu.agh.amber.common.proto.CommonProto.Joins;

/**
 * Saves a picture of a camera, which is usually longer than a frame.
 *
 * <pre>./run Picture FILE [HOST [PORT]]</pre>
 *
 * The default address is AMBER_MEDIATOR: HOST, HOST:PORT or [IPV6]:PORT.
 */
final class Picture {
    private static final int CAMERA = 17;
    private static final int TRIES = 3;
    /** A camera that nobody uses is switched on first. */
    private static final int PATIENCE_MS = 6000;
    /** So long after a piece, the missing ones are called for. */
    private static final int PAUSE_MS = 50;
    private static final int CALLS = 3;

    /** The answer to a request for a picture: a short message, or the joined one. Null if none came. */
    private static DriverMsg request(Connection mediator, int number) throws IOException {
        DriverMsg question = DriverMsg.newBuilder()
                .setType(MsgType.DATA)
                .setSynNum(number)
                .setJoins(Joins.getDefaultInstance()) // this client joins pieces of the usual length
                .setExtension(CameraProto.getPicture, CameraProto.PictureRequest.getDefaultInstance())
                .build();
        if (!mediator.send(CAMERA, question)) {
            return null;
        }
        Joiner joiner = new Joiner();
        long end = System.nanoTime() + PATIENCE_MS * 1_000_000L;
        int calls = 0;
        while (System.nanoTime() < end) {
            boolean mayCall = joiner.hasBegun() && calls < CALLS;
            DriverMsg message;
            try {
                message = mediator.receive(mayCall ? PAUSE_MS : (int) ((end - System.nanoTime()) / 1_000_000L));
            } catch (SocketTimeoutException silent) {
                if (!mayCall || !mediator.send(CAMERA, joiner.call())) {
                    return null;
                }
                calls++;
                continue;
            }
            if (message.hasPiece()) {
                byte[] joined = joiner.join(message.getPiece());
                if (joined == null) {
                    continue;
                }
                try {
                    message = mediator.parse(joined);
                } catch (InvalidProtocolBufferException junk) {
                    continue;
                }
            }
            if (message.getAckNum() == number) {
                return message;
            }
        }
        return null;
    }

    public static void main(String[] arguments) throws Exception {
        if (arguments.length < 1) {
            System.err.println("usage: run Picture FILE [HOST [PORT]]");
            System.exit(2);
        }
        ExtensionRegistry registry = ExtensionRegistry.newInstance();
        CameraProto.registerAllExtensions(registry);
        String address = arguments.length > 1 ? arguments[1] : null;
        String port = arguments.length > 2 ? arguments[2] : null;
        Connection mediator = new Connection(address, port, registry);
        DriverMsg answer = null;
        for (int number = 1; number <= TRIES && answer == null; number++) {
            try {
                answer = request(mediator, number);
            } catch (IOException error) {
                mediator.connectAgain(); // nobody listens there
            }
        }
        String error = null;
        if (answer == null) {
            error = "no answer; is a mediator with a camera running there?";
        } else if (answer.hasExtension(CameraProto.pictureRefused)) {
            error = "no picture: " + answer.getExtension(CameraProto.pictureRefused);
        } else if (!answer.hasExtension(CameraProto.picture)) {
            error = "the camera is not available; `amber status camera` shows the reason";
        } else {
            byte[] data = answer.getExtension(CameraProto.picture).getData().toByteArray();
            Files.write(Path.of(arguments[0]), data);
            System.out.println(arguments[0] + ": " + data.length + " bytes");
        }
        mediator.leave();
        if (error != null) {
            System.err.println("error: " + error);
            System.exit(1);
        }
    }
}
