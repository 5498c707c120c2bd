//! Takes a picture.

use std::error::Error;
use std::fs;

use amber_sdk::Robot;
use amber_sdk::proto::camera::PictureRequest;

#[amber_sdk::main]
async fn main(robot: Robot) -> Result<(), Box<dyn Error>> {
    let picture = robot.camera(0).picture(PictureRequest::default()).await?;
    fs::write("picture.jpg", picture.data())?;
    println!(
        "picture.jpg has {} x {} pixels",
        picture.width(),
        picture.height()
    );
    Ok(())
}
